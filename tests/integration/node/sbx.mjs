// An sbx client by fetch and ws: a command, its live events, their replay, `since` and `exec_id`, and a sidecar's ingest.
import assert from "node:assert";
import WebSocket from "ws";

const [url, token] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };

async function ask(method, path, body) {
  const r = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  return [r.status, await r.json()];
}

function events(query, until) {
  return new Promise((resolve, reject) => {
    const got = [];
    const ws = new WebSocket(`${url.replace("http", "ws")}/sandboxes/${box}/stream${query}`, { headers });
    const timer = setTimeout(() => reject(new Error(`no end: ${JSON.stringify(got)}`)), 10000);
    ws.on("message", (data, binary) => {
      assert(!binary);
      got.push(JSON.parse(data));
      if (!until(got.at(-1))) return;
      clearTimeout(timer);
      ws.close();
      resolve(got);
    });
    ws.on("error", reject);
  });
}

/* A sidecar's connection: with a token in the path, or a header. */
function ingest(path, extra, messages) {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(url.replace("http", "ws") + path, { headers: extra });
    ws.on("open", () => {
      for (const m of messages) ws.send(typeof m === "string" ? m : JSON.stringify(m));
      ws.on("pong", () => ws.close());
      ws.ping();
    });
    ws.on("close", () => resolve(true));
    ws.on("unexpected-response", (request, r) => {
      request.destroy();
      resolve(r.statusCode);
    });
    ws.on("error", reject);
  });
}

const [made, names] = await ask("POST", "/sandboxes", {});
assert.equal(made, 200);
const box = names.id;
const [status, started] = await ask("POST", `/sandboxes/${box}/exec`, { command: ["sh", "-c", "echo héllo; sleep 0.3; echo bye; exit 4"] });
assert.equal(status, 200);
assert.equal(started.status, "running");
const ends = (e) => e.type === "exit" && e.exec_id === started.exec_id;
const live = await events("", ends);
assert.deepEqual(live.map((e) => e.type), ["start", "output", "output", "exit"]);
assert.equal(live[1].data, "héllo\n");
assert.equal(live[3].exit_code, 4);
assert.deepEqual(await events(`?exec_id=${started.exec_id}`, ends), live);
assert.deepEqual(await events(`?since=${live[1].seq}`, ends), live.slice(2));
const [, record] = await ask("GET", `/sandboxes/${box}/execs/${started.exec_id}`);
assert.equal(record.status, "failed");
const [code, wrong] = await ask("POST", `/sandboxes/${box}/exec`, { command: "x" });
assert.equal(code, 400);
assert.equal(wrong.error, "json: cannot unmarshal string into Go struct field ExecRequest.command of type []string");

// Beside it another command, and what a sidecar tells: each reader has what it asked for, in one order.
const [, other] = await ask("POST", `/sandboxes/${box}/exec`, { command: ["sh", "-c", "echo other; echo wrong >&2"] });
const over = (id) => (e) => e.type === "exit" && e.exec_id === id;
assert.ok((await events(`?exec_id=${other.exec_id}`, over(other.exec_id))).every((e) => e.exec_id === other.exec_id));
const told = [
  { exec_id: "side", type: "start", sandbox_id: "forged", seq: 1 },
  "no JSON",
  { exec_id: "side", type: "output", stream: "stderr", data: "from the sidecar ✓\n" },
  { exec_id: "side", type: "exit", exit_code: 3 },
];
assert.equal(await ingest(`/t/${"0".repeat(64)}/sandboxes/${box}/ingest`, {}, told), 401);
assert.equal(await ingest(`/sandboxes/${box}/ingest`, {}, told), 401);
assert.equal(await ingest(`/t/${names.ingest_token}/sandboxes/${box}/ingest`, {}, told), true);
const side = await events("?exec_id=side", over("side"));
assert.deepEqual(side.map((e) => [e.type, e.stream, e.data, e.exit_code, e.source, e.sandbox_id]), [
  ["start", undefined, undefined, undefined, "ingest", box],
  ["output", "stderr", "from the sidecar ✓\n", undefined, "ingest", box],
  ["exit", undefined, undefined, 3, "ingest", box],
]);
const all = await events("", over("side"));
assert.deepEqual(all.map((e) => e.seq), all.map((e) => e.seq).sort((a, b) => a - b));
assert.deepEqual(all.filter((e) => e.exec_id === started.exec_id), live);
assert.deepEqual(await events(`?since=${side[0].seq}`, over("side")), side.slice(1));
assert.equal(await ingest(`/sandboxes/${box}/ingest`, { "x-ingest-token": names.ingest_token }, [{ exec_id: "two", type: "exit" }]), true);
assert.equal((await events(`?since=${side.at(-1).seq}`, over("two")))[0].exec_id, "two");
assert.deepEqual(await ask("DELETE", `/sandboxes/${box}`), [200, { status: "deleted" }]);
console.log("ok");
