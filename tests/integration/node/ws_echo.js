// The ws package against an echo service.  usage: ws_echo.js URL; prints one JSON line {ok, ...}.
const WebSocket = require('ws');
const crypto = require('crypto');
const [url] = process.argv.slice(2);

function exchange(ws, message, binary) {
  return new Promise((resolve, reject) => {
    ws.once('message', (data, isBinary) => {
      const want = Buffer.from(message);
      if (isBinary !== binary || !want.equals(data)) reject(new Error(`echo of ${want.length} bytes differs`));
      else resolve();
    });
    ws.send(message, { binary });
  });
}

async function main() {
  const ws = new WebSocket(url);
  await new Promise((resolve, reject) => { ws.once('open', resolve); ws.once('error', reject); });
  await exchange(ws, 'hello', false);
  await exchange(ws, '', false);
  await exchange(ws, 'ž€😀'.repeat(2000), false);
  for (const size of [0, 1, 125, 126, 65535, 65536, 700000]) await exchange(ws, crypto.randomBytes(size), true);
  // Fragments, a ping between them.
  const joined = new Promise((resolve) => ws.once('message', (d) => resolve(d.toString())));
  const pong = new Promise((resolve) => ws.once('pong', (d) => resolve(d.toString())));
  ws.send('one ', { fin: false });
  ws.ping('are you there');
  ws.send('two ', { fin: false });
  ws.send('three', { fin: true });
  if (await pong !== 'are you there') throw new Error('pong differs');
  if (await joined !== 'one two three') throw new Error('fragments differ');
  // Many at once, in order.
  const many = [];
  const all = new Promise((resolve) => ws.on('message', function on(d) {
    many.push(d.toString());
    if (many.length === 1000) { ws.off('message', on); resolve(); }
  }));
  for (let i = 0; i < 1000; i++) ws.send(String(i));
  await all;
  if (many.some((v, i) => v !== String(i))) throw new Error('order differs');
  const closed = new Promise((resolve) => ws.once('close', (code) => resolve(code)));
  ws.close(4000, 'bye');
  const code = await closed;
  if (code !== 4000) throw new Error(`close code ${code}`);
  // Invalid text must be refused by 1007.
  const bad = new WebSocket(url);
  await new Promise((resolve, reject) => { bad.once('open', resolve); bad.once('error', reject); });
  const refused = new Promise((resolve) => bad.once('close', (c) => resolve(c)));
  bad._socket.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xc3, 0x28]));
  if (await refused !== 1007) throw new Error('invalid UTF-8 was not refused');
  console.log(JSON.stringify({ ok: true, messages: many.length }));
}

main().catch((e) => { console.log(JSON.stringify({ ok: false, error: String(e) })); process.exit(1); });
