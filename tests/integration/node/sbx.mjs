// An sbx client by fetch and ws: a command, its live events, their replay, and `since`.
import assert from "node:assert";
import WebSocket from "ws";

const [url, token, box] = process.argv.slice(2);
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
console.log("ok");
