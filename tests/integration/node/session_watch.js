// A member of a session by the ws package.  usage: session_watch.js URL TOKEN; prints each message that is not output as
// one line, a screen as the text that its updates have made; each line of standard input is sent as it is.
const WebSocket = require('ws');
const readline = require('readline');
const [url, token] = process.argv.slice(2);
const ws = new WebSocket(url, ['holt.attach.v1'], { headers: { Authorization: `Bearer ${token}` } });
const lines = new Map();
let size = '';

function draw(m) {
  if (m.keyframe || size !== `${m.rows}x${m.cols}`) lines.clear();
  size = `${m.rows}x${m.cols}`;
  for (const line of m.lines) lines.set(line.row, line.runs.map((r) => r.text).join('').trimEnd());
  return Array.from({ length: m.rows }, (_, r) => lines.get(r) || '').join('\n') + '\n';
}

ws.on('message', (data, isBinary) => {
  if (isBinary) return;
  const m = JSON.parse(data);
  if (m.type === 'screen') console.log(JSON.stringify({ type: 'screen', text: draw(m), cursor: m.cursor }));
  else console.log(JSON.stringify(m));
});
ws.on('close', (code) => { console.log(JSON.stringify({ type: 'closed', code })); process.exit(0); });
ws.on('error', (e) => { console.log(JSON.stringify({ type: 'failed', message: e.message })); process.exit(1); });
readline.createInterface({ input: process.stdin }).on('line', (l) => ws.send(l)).on('close', () => ws.close());
