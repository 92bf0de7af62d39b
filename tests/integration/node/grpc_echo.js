// @grpc/grpc-js against the echo server and holtd's health service.
// usage: grpc_echo.js ECHO-ADDRESS HOLTD-ADDRESS HEALTH.PROTO; prints one JSON line {ok, ...}.
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const crypto = require('crypto');
const assert = require('assert');
const [echoAddress, holtdAddress, healthProto] = process.argv.slice(2);

const same = (b) => b;
const path = (name) => `/test.Echo/${name}`;
const soon = (ms) => ({ deadline: Date.now() + ms });

function unary(client, name, message, options = soon(10000), metadata = new grpc.Metadata()) {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(path(name), same, same, message, metadata, options,
      (e, reply) => (e ? reject(e) : resolve({ reply, call })));
  });
}

function times(n) {
  const m = new grpc.Metadata();
  m.set('x-count', String(n));
  return m;
}

async function fails(promise, ...codes) {
  const e = await promise.then(() => null, (x) => x);
  assert(e, `should fail with ${codes}`);
  assert(codes.includes(e.code), e.message);
  return e;
}

async function main() {
  const client = new grpc.Client(echoAddress, grpc.credentials.createInsecure(), { 'grpc.enable_http_proxy': 0 });
  for (const size of [0, 1, 1000, 2000000]) {
    const message = crypto.randomBytes(size);
    assert((await unary(client, 'Unary', message)).reply.equals(message));
  }
  const many = await Promise.all([...Array(500).keys()].map((i) => unary(client, 'Unary', Buffer.from(String(i)))));
  many.forEach((m, i) => assert.strictEqual(m.reply.toString(), String(i)));

  let count = 0;
  await new Promise((resolve, reject) => {
    const s = client.makeServerStreamRequest(path('ServerStream'), same, same, Buffer.from('x'), times(200), soon(10000));
    s.on('data', () => { count += 1; });
    s.on('end', resolve);
    s.on('error', reject);
  });
  assert.strictEqual(count, 200);

  const echoed = [];
  await new Promise((resolve, reject) => {
    const s = client.makeBidiStreamRequest(path('Bidi'), same, same, soon(10000));
    s.on('data', (d) => echoed.push(d.toString()));
    s.on('end', resolve);
    s.on('error', reject);
    for (let i = 0; i < 100; i++) s.write(Buffer.from(`m${i}`));
    s.end();
  });
  assert.deepStrictEqual(echoed, [...Array(100).keys()].map((i) => `m${i}`));

  await fails(unary(client, 'Unary', Buffer.from('hang'), soon(300)), grpc.status.DEADLINE_EXCEEDED);
  await fails(unary(client, 'Nothing', Buffer.alloc(0)), grpc.status.UNIMPLEMENTED);
  const e = await fails(unary(client, 'Unary', Buffer.from('fail')), grpc.status.FAILED_PRECONDITION);
  assert(e.details.includes('100% ünlucky'), e.details);

  const metadata = new grpc.Metadata();
  metadata.set('x-echo', 'text');
  metadata.set('x-echo-bin', Buffer.from([0, 255, 1]));
  const seen = new grpc.Metadata();
  await new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(path('Unary'), same, same, Buffer.from('m'), metadata, soon(5000),
      (err) => (err ? reject(err) : undefined));
    call.on('metadata', (m) => seen.merge(m));
    call.on('status', (s) => { seen.merge(s.metadata); resolve(); });
  });
  assert.strictEqual(seen.get('x-echo')[0], 'text');
  assert(seen.get('x-echo-bin')[0].equals(Buffer.from([0, 255, 1])));

  await new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(path('Unary'), same, same, Buffer.from('hang'), soon(20000), (err) => {
      if (err && err.code === grpc.status.CANCELLED) resolve(); else reject(err || new Error('was answered'));
    });
    setTimeout(() => call.cancel(), 200);
  });
  client.close();

  const { Health } = grpc.loadPackageDefinition(loader.loadSync(healthProto)).grpc.health.v1;
  const health = new Health(holtdAddress, grpc.credentials.createInsecure(), { 'grpc.enable_http_proxy': 0 });
  const reply = await new Promise((resolve, reject) => health.Check({ service: '' }, soon(5000),
    (err, r) => (err ? reject(err) : resolve(r))));
  assert.strictEqual(reply.status, 1);
  health.close();
  console.log(JSON.stringify({ ok: true }));
}

main().catch((e) => { console.log(JSON.stringify({ ok: false, error: String(e.stack || e) })); process.exit(1); });
