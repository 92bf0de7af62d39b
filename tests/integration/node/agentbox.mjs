// The agentbox service by @connectrpc, as its published TypeScript client calls it: native gRPC over HTTP/2, gRPC-Web and
// Connect over HTTP/1.1.  usage: agentbox.mjs BASE_URL TOKEN DESCRIPTOR_SET
import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { createGrpcWebTransport as createBrowserTransport } from "@connectrpc/connect-web";

const [baseUrl, token, set] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(set)));
const service = registry.getService("sandbox.v1.SandboxService");
const interceptors = [(next) => (req) => { req.header.set("authorization", `Bearer ${token}`); return next(req); }];

const transports = {
  "gRPC": createGrpcTransport({ baseUrl, interceptors }),
  "gRPC-Web 1.1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1", interceptors }),
  "gRPC-Web 2": createGrpcWebTransport({ baseUrl, httpVersion: "2", interceptors }),
  "gRPC-Web fetch": createBrowserTransport({ baseUrl, interceptors }),
  "Connect JSON": createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false, interceptors }),
  "Connect proto": createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true, interceptors }),
};

async function surface(name, client, streams) {
  const { session } = await client.createSession({ sessionId: `ts ${name}`, tenantId: "team" });
  assert.equal(session.sessionId, `ts ${name}`);
  assert.equal(session.tenantId, "team");
  assert.equal(session.allowedHosts.length, 8);
  const at = { sessionId: session.sessionId };
  assert.ok((await client.listSessions({})).sessions.some((s) => s.sessionId === session.sessionId));
  assert.equal((await client.getSession(at)).session.status, "running");
  assert.deepEqual(await client.writeFile({ ...at, path: "f.py", content: "print(6 * 7)" }).then((r) => r.success), true);
  const ran = await client.exec({ ...at, command: "python3 f.py; echo é >&2; exit 4" });
  assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr, ran.timedOut], [4, "42\n", "é\n", false]);
  assert.equal((await client.readFile({ ...at, path: "f.py" })).content, "print(6 * 7)");
  assert.equal((await client.readFile({ ...at, path: "/etc/passwd" })).error, "Path not allowed");
  assert.equal((await client.pipInstall({ ...at, packages: ["a b"] })).stderr, "Invalid package specifier: a b");
  if (streams) {
    const seen = [];
    for await (const m of client.execStream({ ...at, command: "echo a; echo b >&2; exit 3" })) seen.push(m);
    assert.equal(seen.filter((m) => m.type === "stdout").map((m) => m.data).join(""), "a\n");
    assert.equal(seen.filter((m) => m.type === "stderr").map((m) => m.data).join(""), "b\n");
    assert.deepEqual([seen.at(-1).type, seen.at(-1).exitCode], ["exit", 3]);
  }
  assert.equal((await client.destroySession(at)).success, true);
  assert.equal((await client.destroySession(at)).success, false);
  await assert.rejects(client.getSession(at), (e) => {
    assert.ok(e instanceof ConnectError);
    assert.deepEqual([e.code, e.rawMessage], [Code.NotFound, "Session not found"]);
    return true;
  });
}

for (const [name, transport] of Object.entries(transports)) {
  await surface(name, createClient(service, transport), !name.startsWith("Connect"));
  console.log(`${name}: ok`);
}
process.exit(0);
