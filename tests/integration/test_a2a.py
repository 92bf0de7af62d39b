"""A2A: each sandbox is an agent. agentic-sandbox's own paths as its clients call them, version 1.0 by the protocol's SDK, cards and pushes
checked by a library that is none of ours."""
import asyncio
import base64
import concurrent.futures
import hashlib
import http.server
import json
import os
import socket
import struct
import subprocess
import threading
import time
import urllib.request

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import ContentTypeNotSupportedError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from daemon import native, wait_for

RUNTIME = "https://agentic-sandbox.aiwg.io/extensions/runtime/v1"
IDEMPOTENCY = "https://agentic-sandbox.aiwg.io/extensions/idempotency/v1"
WORKER = r'printf "working on %s\n" "$AIWG_A2A_MESSAGE"; printf "grün\n" > ~/outbox/result.txt; case "$AIWG_A2A_MESSAGE" in *fail*) exit 3;; *wait*) while [ ! -e /tmp/go ]; do sleep 0.05; done;; *hang*) sleep 600;; esac'


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("a2a"), "--webhook-hosts", "127.0.0.1")
    yield d
    d.clear()
    d.stop()


@pytest.fixture(scope="module")
def agent(holtd):
    """Without labels: a message is printed."""
    return holtd.ok("POST", "/holt/v1/sandboxes", {"name": "plain"})


@pytest.fixture(scope="module")
def worker(holtd):
    return holtd.ok("POST", "/holt/v1/sandboxes", {"name": "worker", "labels": {"holt.a2a.command": WORKER, "holt.a2a.description": "Works \"hard\" — über alles\t!"}})


def seed(holtd, method, path, body=None, extensions=RUNTIME, token="admin"):
    status, reply, h = holtd.request(method, path, body, token=token, headers={"A2A-Extensions": extensions} if extensions else {})
    return status, reply, {k.lower(): v for k, v in h.items()}


def message(text="hello", **more):
    return {"message": {"messageId": os.urandom(8).hex(), "role": "user", "parts": [{"kind": "text", "text": text}], **more}}


def send(holtd, instance, text="hello", **more):
    status, task, _ = seed(holtd, "POST", f"/agents/{instance}/v1/messages:send", message(text, **more))
    assert status == 202, task
    return task


def ended(holtd, instance, task, state="completed"):
    path = f"/agents/{instance}/v1/tasks/{task['id']}"
    t = wait_for(lambda: (t := holtd.ok("GET", path))["status"]["state"] in ("completed", "failed", "canceled") and t, 60)
    assert t["status"]["state"] == state, t
    return t


# --- agentic-sandbox's form ---


def test_the_seeds_lines_of_curl(holtd, agent):
    """S1-104, S1-105, S1-106: a message makes a task, whose output is its artifacts."""
    base = f"{holtd.url}/agents/{agent['id']}"
    auth = ["-H", f"Authorization: Bearer {holtd.token}"]
    made = subprocess.run(["curl", "-s", "-i", "-X", "POST", f"{base}/v1/messages:send", *auth, "-H", f"A2A-Extensions: {RUNTIME}", "-H", "Content-Type: application/json",
                           "-d", json.dumps(message("Grüße\nzwei"))], stdout=subprocess.PIPE, check=True).stdout.decode()
    head, body = made.split("\r\n\r\n", 1)
    task = json.loads(body)
    assert " 202 " in head.split("\r\n")[0] and f"/agents/{agent['id']}/v1/tasks/{task['id']}" in head, made
    assert task["kind"] == "task" and task["status"]["state"] == "submitted" and task["contextId"] == task["id"]
    ended(holtd, agent["id"], task)

    def curl(path):
        return json.loads(subprocess.run(["curl", "-s", f"{base}{path}", *auth], stdout=subprocess.PIPE, check=True).stdout)

    for prefix in ("/v1", ""):
        listed = curl(f"{prefix}/tasks/{task['id']}/artifacts")
        assert listed["task_id"] == task["id"]
        out = listed["artifacts"][0]
        assert out["artifact_id"] == f"{task['id']}-stdout-0000" and out["task_id"] == task["id"] and out["created_at"]
        assert out["artifact"]["kind"] == "output_chunk" and out["artifact"]["stream"] == "stdout" and out["artifact"]["data"] == "Grüße\nzwei\n"
        assert out["artifact"]["seq"] == 0 and out["artifact"]["command_id"].startswith("ex_") and out["artifact"]["mission_id"] == task["id"]
        for entry in listed["artifacts"]:
            assert curl(f"{prefix}/tasks/{task['id']}/artifacts/{entry['artifact_id']}") == entry


def problem(answer, status, code):
    got, body, h = answer
    assert (got, body["status"], body["type"], body["code"]) == (status, status, code, code) and body["title"] and body["detail"], answer
    assert h["content-type"] == "application/problem+json"
    return body


def test_what_is_not_there_is_a_problem(holtd, agent, worker):
    task = send(holtd, "plain")
    other = f"/agents/{worker['id']}/v1/tasks/{task['id']}"
    assert problem(seed(holtd, "GET", "/agents/none/v1/tasks/x/artifacts"), 404, "instance.not_found")["instance_id"] == "none"
    problem(seed(holtd, "GET", f"/agents/{agent['id']}/v1/tasks/none/artifacts"), 404, "task.not_found")
    problem(seed(holtd, "GET", other), 404, "task.not_found")
    problem(seed(holtd, "GET", f"{other}/artifacts"), 404, "task.not_found")
    for name in ("none", f"{task['id']}-stdout-9999", f"{task['id']}-file-9999", f"{task['id']}-stdout--001", "x-stdout-0000"):
        problem(seed(holtd, "GET", f"/agents/plain/v1/tasks/{task['id']}/artifacts/{name}"), 404, "artifact.not_found")
    problem(seed(holtd, "GET", "/agents/plain/v1/tasks", token=None), 401, "request.unauthenticated")
    ended(holtd, "plain", task)


@pytest.mark.parametrize("body,status,code", [
    (b"{", 400, "request.invalid_json"), ([], 400, "request.invalid_params"), ({}, 400, "request.invalid_params"),
    ({"message": {"messageId": "m", "role": "agent", "parts": [{"text": "x"}]}}, 400, "request.invalid_params"),
    ({"message": {"role": "user", "parts": [{"text": "x"}]}}, 400, "request.invalid_params"),
    ({"message": {"messageId": "x" * 257, "role": "user", "parts": [{"text": "x"}]}}, 400, "request.invalid_params"),
    ({"message": {"messageId": 7, "role": "user", "parts": [{"text": "x"}]}}, 400, "request.invalid_params"),
    ({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x"}] * 65}}, 400, "request.invalid_params"),
    ({"message": {"messageId": "m", "role": "user", "parts": [{"text": "x" * (96 * 1024 + 1)}]}}, 400, "request.invalid_params"),
    ({"message": {"messageId": "m", "role": "user", "parts": [{"kind": "data", "data": {}}]}}, 502, "dispatch.failed"),
    ({"message": {"messageId": "m", "role": "user", "parts": [7, None]}}, 502, "dispatch.failed"),
])
def test_messages_that_are_refused(holtd, agent, body, status, code):
    h = {"A2A-Extensions": RUNTIME, "Content-Type": "application/json"}
    got, reply, head = holtd.request("POST", f"/agents/{agent['id']}/v1/messages:send", body, headers=h)
    problem((got, reply, {k.lower(): v for k, v in head.items()}), status, code)


def test_the_extension_is_wanted(holtd, agent):
    path = f"/agents/{agent['id']}/v1/messages:send"
    problem(seed(holtd, "POST", path, message(), extensions=""), 400, "extension.required_not_activated")
    problem(seed(holtd, "POST", path, message(), extensions=IDEMPOTENCY), 400, "extension.required_not_activated")


def test_a_stopped_instance_is_not_ready(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "halted"})
    holtd.ok("POST", f"/holt/v1/sandboxes/{box['id']}/stop", {})
    _, _, h = seed(holtd, "POST", "/agents/halted/v1/messages:send", message())
    problem(seed(holtd, "POST", "/agents/halted/v1/messages:send", message()), 503, "runtime.not_ready")
    assert h["retry-after"] == "1"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_a_message_with_a_known_id_gives_its_first_task(holtd, agent):
    body, path = message("once"), f"/agents/{agent['id']}/v1/messages:send"
    status, first, h = seed(holtd, "POST", path, body, extensions=f"{RUNTIME}, {IDEMPOTENCY}")
    assert status == 202 and "idempotent-replayed" not in h
    for _ in range(2):
        status, again, h = seed(holtd, "POST", path, body, extensions=f"{RUNTIME}, {IDEMPOTENCY}")
        assert (status, again["id"], h["idempotent-replayed"]) == (202, first["id"], "true")
    status, other, _ = seed(holtd, "POST", path, body)  # not asked for
    assert status == 202 and other["id"] != first["id"]
    ended(holtd, "plain", first)
    ended(holtd, "plain", other)


def test_many_at_once_with_one_id_are_one_task(holtd, agent):
    body, path = message("all at once"), f"/agents/{agent['id']}/v1/messages:send"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: seed(holtd, "POST", path, body, extensions=f"{RUNTIME},{IDEMPOTENCY}"), range(8)))
    assert {r[0] for r in replies} <= {202, 409}
    ids = {r[1]["id"] for r in replies if r[0] == 202}
    assert len(ids) == 1 and sum("idempotent-replayed" not in r[2] for r in replies if r[0] == 202) == 1
    ended(holtd, "plain", {"id": ids.pop()})


def test_the_message_is_no_line_for_the_shell(holtd, worker):
    """What runs is the label's; the text is a variable of it."""
    task = send(holtd, "worker", "$(touch /tmp/hacked); `id` \" ' ; touch /tmp/hacked")
    ended(holtd, "worker", task)
    out = seed(holtd, "GET", f"/agents/worker/v1/tasks/{task['id']}/artifacts")[1]["artifacts"][0]["artifact"]["data"]
    assert out == "working on $(touch /tmp/hacked); `id` \" ' ; touch /tmp/hacked\n"
    run = holtd.ok("POST", f"/holt/v1/sandboxes/{worker['id']}/execs", {"command": ["sh", "-c", "ls /tmp"]})
    assert "hacked" not in run["stdout"]


def test_an_agent_gets_the_message_as_its_prompt(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "agentic", "labels": {"holt.a2a.agent": "claude", "holt.a2a.timeout": "1m"}})
    script = "mkdir -p /mnt/global/bin && printf '#!/bin/sh\\nfor p; do :; done; echo \"prompt: $p\"\\n' > /mnt/global/bin/claude; chmod +x /mnt/global/bin/claude"
    assert holtd.ok("POST", f"/holt/v1/sandboxes/{box['id']}/execs", {"command": ["sh", "-c", script]})["exit_code"] == 0
    task = send(holtd, "agentic", "--version; $HOME")
    ended(holtd, "agentic", task)
    assert seed(holtd, "GET", f"/agents/agentic/v1/tasks/{task['id']}/artifacts")[1]["artifacts"][0]["artifact"]["data"] == "prompt: --version; $HOME\n"
    assert holtd.ok("GET", f"/holt/v1/task-runs/{task['id']}")["manifest"]["lifecycle"]["timeout"] == "1m"
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_files_of_the_outbox_are_artifacts(holtd, worker):
    task = send(holtd, "worker", "files")
    ended(holtd, "worker", task)
    listed = seed(holtd, "GET", f"/agents/worker/v1/tasks/{task['id']}/artifacts")[1]["artifacts"]
    file = next(a["artifact"] for a in listed if a["artifact"].get("name") == "result.txt")
    assert file["kind"] == "file" and file["sha256"] == hashlib.sha256("grün\n".encode()).hexdigest() and file["size_bytes"] == 6
    with urllib.request.urlopen(urllib.request.Request(file["uri"], headers={"Authorization": f"Bearer {holtd.token}"})) as r:
        assert r.read().decode() == "grün\n"


def test_long_output_is_cut_into_whole_characters(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "long", "labels": {"holt.a2a.command": "i=0; while [ $i -lt 4000 ]; do echo \"x$i äöü€𝄞\"; i=$((i+1)); done"}})
    task = send(holtd, "long")
    ended(holtd, "long", task)
    listed = seed(holtd, "GET", f"/agents/long/v1/tasks/{task['id']}/artifacts")[1]["artifacts"]
    chunks = [a["artifact"] for a in listed if a["artifact"]["kind"] == "output_chunk"]
    assert len(chunks) > 2 and [c["seq"] for c in chunks] == list(range(len(chunks)))
    assert "".join(c["data"] for c in chunks) == "".join(f"x{i} äöü€𝄞\n" for i in range(4000))
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def test_failure_and_cancel(holtd, worker):
    task = send(holtd, "worker", "fail")
    t = ended(holtd, "worker", task, "failed")
    assert t["metadata"]["exit_code"] == 3 and "status 3" in t["status"]["message"]["parts"][0]["text"]
    problem(seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/cancel", {}), 409, "task.not_cancelable")
    task = send(holtd, "worker", "hang")
    wait_for(lambda: holtd.ok("GET", f"/holt/v1/task-runs/{task['id']}")["state"] == "running")
    status, t, _ = seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/cancel")
    assert status == 200 and t["status"]["state"] == "canceled"


def test_messages_of_one_instance_run_one_after_the_other(holtd, worker):
    first, second = send(holtd, "worker", "wait 1"), send(holtd, "worker", "wait 2")
    wait_for(lambda: holtd.ok("GET", f"/holt/v1/task-runs/{first['id']}")["state"] == "running")
    assert holtd.ok("GET", f"/agents/worker/v1/tasks/{second['id']}")["status"]["state"] == "submitted"
    holtd.ok("POST", f"/holt/v1/sandboxes/{worker['id']}/execs", {"command": ["touch", "/tmp/go"]})
    one, two = ended(holtd, "worker", first), ended(holtd, "worker", second)
    assert one["status"]["timestamp"] <= two["status"]["timestamp"]
    holtd.ok("POST", f"/holt/v1/sandboxes/{worker['id']}/execs", {"command": ["rm", "/tmp/go"]})


def test_the_list_has_pages(holtd):
    box = holtd.ok("POST", "/holt/v1/sandboxes", {"name": "pages"})
    ids = [send(holtd, "pages", str(n), contextId="even" if n % 2 == 0 else "odd")["id"] for n in range(5)]
    for i in ids:
        ended(holtd, "pages", {"id": i})
    got, cursor = [], ""
    while True:
        page = holtd.ok("GET", f"/agents/pages/v1/tasks?limit=2&cursor={cursor}")
        got += [t["id"] for t in page["tasks"]]
        assert len(page["tasks"]) <= 2
        cursor = page.get("next_cursor")
        if not cursor:
            break
    assert sorted(got) == sorted(ids) and len(got) == 5
    assert len(holtd.ok("GET", "/agents/pages/v1/tasks?contextId=even")["tasks"]) == 3
    assert holtd.ok("GET", "/agents/pages/v1/tasks?state=working")["tasks"] == [] and len(holtd.ok("GET", "/agents/pages/tasks?state=completed")["tasks"]) == 5
    holtd.ok("DELETE", f"/holt/v1/sandboxes/{box['id']}")


def events(holtd, method, path, body=None, headers=None):
    r = urllib.request.Request(holtd.url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                               headers={"Authorization": f"Bearer {holtd.token}", "Content-Type": "application/json", **(headers or {})})
    with urllib.request.urlopen(r, timeout=60) as f:
        assert f.headers["Content-Type"] == "text/event-stream"
        text = f.read().decode()
    return [dict(line.split(": ", 1) for line in e.split("\n") if ": " in line) for e in text.split("\n\n") if "data:" in e]


def test_streams_end_with_the_task(holtd, worker):
    told = events(holtd, "POST", "/agents/worker/v1/messages:stream", message("stream"), {"A2A-Extensions": RUNTIME})
    assert {e["event"] for e in told} == {"task"}
    tasks = [json.loads(e["data"]) for e in told]
    assert [t["status"]["state"] for t in tasks] == ["submitted", "working", "completed"] and len({t["id"] for t in tasks}) == 1
    again = events(holtd, "GET", f"/agents/worker/v1/tasks/{tasks[0]['id']}/subscribe")
    assert [json.loads(e["data"])["status"]["state"] for e in again] == ["completed"]


# --- owners ---


def test_a_token_sees_only_its_instances(holtd, agent):
    mine = send(holtd, "plain")
    ended(holtd, "plain", mine)
    token = holtd.ok("POST", "/holt/v1/tokens", {"name": "s", "role": "operator", "tenant": "strangers"})["token"]
    h = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0", "A2A-Extensions": RUNTIME}
    for method, path, body in (("GET", ".well-known/agent-card.json", None), ("GET", "v1/tasks", None), ("GET", f"v1/tasks/{mine['id']}", None),
                               ("GET", f"v1/tasks/{mine['id']}/artifacts", None), ("POST", "v1/messages:send", message()), ("POST", f"v1/tasks/{mine['id']}/cancel", {}),
                               ("GET", "a2a/tasks", None), ("POST", "a2a", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": mine["id"]}}),
                               ("POST", f"v1/tasks/{mine['id']}/pushNotificationConfigs", {"url": "http://127.0.0.1:9/"})):
        for name in (agent["id"], "plain"):
            status, reply, _ = holtd.request(method, f"/agents/{name}/{path}", body, token=None, headers=h)
            text = json.dumps(reply)
            assert (status == 404 or (path == "a2a" and status == 200 and "error" in reply)) and mine["id"] not in text, (path, status, reply)
    watcher = holtd.ok("POST", "/holt/v1/tokens", {"name": "w", "role": "observer"})["token"]
    status, reply, _ = holtd.request("POST", "/agents/plain/v1/messages:send", message(), token=None, headers={**h, "Authorization": f"Bearer {watcher}"})
    assert status == 403 and reply["status"] == 403
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message()}
    status, reply, _ = holtd.request("POST", "/agents/plain/a2a", rpc, token=None, headers={**h, "Authorization": f"Bearer {watcher}"})
    assert "error" in reply and "result" not in reply, (status, reply)


# --- the card ---


def unb64(s):
    return base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))


def keys_of(holtd, instance):
    return {k["kid"]: k for k in holtd.ok("GET", f"/agents/{instance}/.well-known/jwks.json", token=None)["keys"]}


def verify(keys, protected, payload, signature):
    header = json.loads(unb64(protected))
    key = keys[header["kid"]]
    assert (header["alg"], key["kty"], key["crv"]) == ("EdDSA", "OKP", "Ed25519")
    thumb = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": key["x"]}, separators=(",", ":"), sort_keys=True)
    assert key["kid"] == base64.urlsafe_b64encode(hashlib.sha256(thumb.encode()).digest()).rstrip(b"=").decode()
    Ed25519PublicKey.from_public_bytes(unb64(key["x"])).verify(unb64(signature), f"{protected}.".encode() + base64.urlsafe_b64encode(payload).rstrip(b"="))
    return header


def canonical(card):
    return json.dumps({k: v for k, v in card.items() if k != "signatures"}, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def test_the_card_is_signed(holtd, worker):
    card = holtd.ok("GET", "/agents/worker/.well-known/agent-card.json")
    assert card["name"] == "worker" and card["description"].startswith('Works "hard" — über') and card["capabilities"]["pushNotifications"] is True
    base = f"{holtd.url}/agents/{worker['id']}"
    assert {i["protocolBinding"]: (i["url"], i["protocolVersion"]) for i in card["supportedInterfaces"]} == {b: (f"{base}/a2a", "1.0") for b in ("JSONRPC", "HTTP+JSON")}
    one = card["signatures"][0]
    header = verify(keys_of(holtd, "worker"), one["protected"], canonical(card), one["signature"])
    assert header["jku"] == f"{base}/.well-known/jwks.json" and header["typ"] == "JOSE"
    with pytest.raises(InvalidSignature):
        verify(keys_of(holtd, "worker"), one["protected"], canonical({**card, "name": "other"}), one["signature"])


def test_the_sdk_finds_the_card_whole(holtd, worker):
    """What the SDK parses and writes again has the signature of what was sent: nothing of it is a default that a canonical form leaves out."""
    from google.protobuf.json_format import MessageToDict

    async def fetch():
        async with http_client(holtd) as c:
            return await A2ACardResolver(c, f"{holtd.url}/agents/{worker['id']}").get_agent_card()

    card = MessageToDict(asyncio.run(fetch()))
    verify(keys_of(holtd, "worker"), card["signatures"][0]["protected"], canonical(card), card["signatures"][0]["signature"])


# --- version 1.0, by the SDK ---


def http_client(holtd):
    return httpx.AsyncClient(headers={"Authorization": f"Bearer {holtd.token}"}, timeout=60)


def with_client(holtd, instance, binding, work, **config):
    async def run():
        async with http_client(holtd) as c:
            card = await A2ACardResolver(c, f"{holtd.url}/agents/{instance}").get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=c, supported_protocol_bindings=[binding], **config)).create(card)
            return await work(client)

    return asyncio.run(run())


def request(text, **more):
    return pb.SendMessageRequest(message=pb.Message(message_id=os.urandom(8).hex(), role=pb.ROLE_USER, parts=[pb.Part(text=text)], **more))


BINDINGS = ["JSONRPC", "HTTP+JSON"]


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_sdk_sends_and_waits(holtd, worker, binding):
    async def work(client):
        return [e async for e in client.send_message(request("sdk", context_id="c-1"))]

    told = with_client(holtd, worker["id"], binding, work, streaming=False)
    task = told[-1].task
    assert len(told) == 1 and task.status.state == pb.TASK_STATE_COMPLETED and task.context_id == "c-1", told
    by_name = {a.name: a for a in task.artifacts}
    assert by_name["output"].parts[0].text == "working on sdk\n"
    assert by_name["result.txt"].parts[0].url.endswith(f"/holt/v1/task-runs/{task.id}/artifacts/result.txt")


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_sdk_streams(holtd, worker, binding):
    async def work(client):
        return [e async for e in client.send_message(request("stream"))]

    told = with_client(holtd, worker["id"], binding, work, streaming=True)
    kinds = [e.WhichOneof("payload") for e in told]
    assert kinds[0] == "task" and kinds[-1] == "status_update", kinds
    output = "".join(p.text for e in told if e.WhichOneof("payload") == "artifact_update" and e.artifact_update.artifact.name == "output" for p in e.artifact_update.artifact.parts)
    assert output == "working on stream\n"
    assert "result.txt" in [e.artifact_update.artifact.name for e in told if e.WhichOneof("payload") == "artifact_update"]
    assert told[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
    assert told[-1].status_update.task_id == told[0].task.id


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_sdk_gets_lists_subscribes_and_cancels(holtd, worker, binding):
    async def work(client):
        sending = client.send_message(request("hang"))
        task = (await anext(sending)).task
        await sending.aclose()  # the task goes on without it
        got = await client.get_task(pb.GetTaskRequest(id=task.id))
        page = await client.list_tasks(pb.ListTasksRequest(page_size=1))
        following = client.subscribe(pb.SubscribeToTaskRequest(id=task.id))
        first = await anext(following)
        ended = await client.cancel_task(pb.CancelTaskRequest(id=task.id))
        rest = [e async for e in following]
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(pb.CancelTaskRequest(id=task.id))
        with pytest.raises(TaskNotFoundError):
            await client.get_task(pb.GetTaskRequest(id="none"))
        with pytest.raises(UnsupportedOperationError):
            [e async for e in client.subscribe(pb.SubscribeToTaskRequest(id=task.id))]
        with pytest.raises(UnsupportedOperationError):
            [e async for e in client.send_message(request("more", task_id=task.id))]
        with pytest.raises(ContentTypeNotSupportedError):
            bad = request("x")
            bad.message.parts.append(pb.Part(url="http://x.test/"))
            [e async for e in client.send_message(bad)]
        return task, got, page, first, ended, rest

    task, got, page, first, last, rest = with_client(holtd, worker["id"], binding, work, streaming=True)
    assert got.id == task.id and len(page.tasks) == 1 and page.next_page_token and page.total_size > 1
    assert first.task.id == task.id and last.status.state == pb.TASK_STATE_CANCELED
    assert rest[-1].status_update.status.state == pb.TASK_STATE_CANCELED


def rpc(holtd, instance, body, **headers):
    return holtd.request("POST", f"/agents/{instance}/a2a", body, headers={"A2A-Version": "1.0", "Content-Type": "application/json", **headers})[1]


def test_json_rpc_has_its_errors(holtd, agent):
    for body, code in ((b"{", -32700), ([], -32600), ({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, -32600), ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
                       ({"jsonrpc": "2.0", "id": 1, "method": "Nothing"}, -32601), ({"jsonrpc": "2.0", "id": 1, "method": ".artifact"}, -32601),
                       ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": []}, -32602), ({"jsonrpc": "2.0", "id": "q", "method": "GetTask", "params": {}}, -32001)):
        reply = rpc(holtd, "plain", body)
        assert reply["error"]["code"] == code and reply["jsonrpc"] == "2.0", (body, reply)
        assert reply["id"] == (body["id"] if isinstance(body, dict) and isinstance(body.get("id"), (int, str)) and code != -32600 else None), reply
    _, reply, _ = holtd.request("POST", "/agents/plain/a2a", {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"})
    assert reply["error"]["code"] == -32009, reply
    status, reply, _ = holtd.request("GET", "/agents/plain/a2a/tasks", headers={"A2A-Version": "0.3"})
    assert status == 400 and reply["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


# --- push notifications ---


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(500 if self.server.fails > 0 else 204)
        self.server.fails -= 1
        self.end_headers()

    def log_message(self, *a):
        pass


@pytest.fixture
def receiver():
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    s.got, s.fails, s.url = [], 0, f"http://127.0.0.1:{s.server_address[1]}/in"
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield s
    s.shutdown()


def check_push(holtd, instance, delivery, state):
    h, body = delivery
    h = {k.lower(): v for k, v in h.items()}
    protected, empty, signature = h["a2a-signature"].split(".")
    header = verify(keys_of(holtd, instance), protected, body, signature)
    assert empty == "" and header["iat"] > 1.7e9
    task = json.loads(body)
    task = task.get("task", task)
    assert task["status"]["state"] == state
    return h, task


@pytest.mark.parametrize("binding", BINDINGS)
def test_pushes_are_delivered_and_signed(holtd, worker, receiver, binding):
    receiver.fails = 1  # the first one is tried again

    async def work(client):
        now = request("wait push")
        now.configuration.return_immediately = True
        now.configuration.task_push_notification_config.CopyFrom(pb.TaskPushNotificationConfig(
            url=receiver.url, token="t0ken", authentication=pb.AuthenticationInfo(scheme="Bearer", credentials="abc")))
        task = [e async for e in client.send_message(now)][-1].task
        second = await client.create_task_push_notification_config(pb.TaskPushNotificationConfig(task_id=task.id, id="mine", url=receiver.url + "2"))
        got = await client.get_task_push_notification_config(pb.GetTaskPushNotificationConfigRequest(task_id=task.id, id="mine"))
        assert got == second and got.id == "mine" and got.url == receiver.url + "2"
        assert len((await client.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))).configs) == 2
        await client.delete_task_push_notification_config(pb.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="mine"))
        assert len((await client.list_task_push_notification_configs(pb.ListTaskPushNotificationConfigsRequest(task_id=task.id))).configs) == 1
        with pytest.raises(TaskNotFoundError):
            await client.get_task_push_notification_config(pb.GetTaskPushNotificationConfigRequest(task_id=task.id, id="mine"))
        return task

    task = with_client(holtd, worker["id"], binding, work, streaming=False)
    wait_for(lambda: len([g for g in receiver.got if b"WORKING" in g[1]]) >= 1)
    holtd.ok("POST", f"/holt/v1/sandboxes/{worker['id']}/execs", {"command": ["touch", "/tmp/go"]})
    wait_for(lambda: any(b"COMPLETED" in g[1] for g in receiver.got))
    holtd.ok("POST", f"/holt/v1/sandboxes/{worker['id']}/execs", {"command": ["rm", "/tmp/go"]})
    h, told = check_push(holtd, "worker", receiver.got[-1], "TASK_STATE_COMPLETED")
    assert told["id"] == task.id and h["x-a2a-notification-token"] == "t0ken" and h["authorization"] == "Bearer abc"
    with pytest.raises(InvalidSignature):
        check_push(holtd, "worker", (receiver.got[-1][0], receiver.got[-1][1] + b" "), "TASK_STATE_COMPLETED")


def test_a_push_goes_only_where_a_setting_allows(holtd, worker):
    task = send(holtd, "worker", "x")
    status, reply, _ = seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs", {"url": "http://10.1.2.3/"})
    assert status == 403 and "webhook_hosts" in reply["detail"], reply
    for body in ({}, {"url": "nothing"}, {"url": "unix:/tmp/x"}, {"url": "http://127.0.0.1/", "token": "a\r\nb: c"}, {"url": "http://127.0.0.1/", "id": "../x"}):
        assert seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs", body)[0] == 400, body
    for n in range(8):
        assert seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs", {"url": f"http://127.0.0.1:9/{n}"})[0] == 201
    assert seed(holtd, "POST", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs", {"url": "http://127.0.0.1:9/9"})[0] == 400
    for p in seed(holtd, "GET", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs")[1]["configs"]:
        assert seed(holtd, "DELETE", f"/agents/worker/v1/tasks/{task['id']}/pushNotificationConfigs/{p['id']}")[0] == 204
    ended(holtd, "worker", task)


def test_nothing_is_told_after_the_token_was_revoked(holtd, receiver):
    owner = holtd.new_token("gone-soon")
    h = {"Authorization": f"Bearer {owner['token']}", "A2A-Extensions": RUNTIME}
    _, box, _ = holtd.request("POST", "/holt/v1/sandboxes", {"name": "orphan", "labels": {"holt.a2a.command": WORKER}}, token=None, headers=h)
    config = {"url": receiver.url, "authentication": {"scheme": "Bearer", "credentials": "hidden"}}
    status, task, _ = holtd.request("POST", f"/agents/{box['id']}/v1/messages:send", {**message("wait"), "configuration": {"pushNotificationConfig": config}}, token=None, headers=h)
    assert status == 202, task
    wait_for(lambda: any(b'"working"' in g[1] for g in receiver.got))
    _, shown, _ = holtd.request("GET", f"/agents/{box['id']}/v1/tasks/{task['id']}/pushNotificationConfigs", token=None, headers=h)
    assert shown["configs"][0]["authentication"] == {"scheme": "Bearer"} and "hidden" not in json.dumps(shown)
    holtd.ok("DELETE", f"/holt/v1/tokens/{owner['id']}")
    holtd.ok("POST", f"/holt/v1/sandboxes/{box['id']}/execs", {"command": ["touch", "/tmp/go"]})
    ended(holtd, box["id"], task)
    # the row goes, and with it the receiver
    wait_for(lambda: holtd.ok("GET", f"/agents/{box['id']}/v1/tasks/{task['id']}/pushNotificationConfigs")["configs"] == [])
    assert not any(b'"completed"' in g[1] for g in receiver.got)


def test_who_leaves_at_once_is_told_all_the_same(holtd, worker, receiver):
    body = message("left")
    body["configuration"] = {"pushNotificationConfig": {"url": receiver.url}}
    text = json.dumps(body).encode()
    for reset in (True,) * 5 + (False,):
        with socket.create_connection(("127.0.0.1", holtd.port)) as s:
            s.sendall(f"POST /agents/worker/v1/messages:send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {holtd.token}\r\nA2A-Extensions: {RUNTIME}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
            if reset:  # what was not read by now is lost
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait_for(lambda: any(b'"completed"' in g[1] for g in receiver.got) or holtd.assert_alive())
    holtd.assert_alive()


def test_a_stop_does_not_wait_for_a_client_that_waits(tmp_path):
    d = native(tmp_path, "--shutdown-ms", "20000")
    box = d.ok("POST", "/holt/v1/sandboxes", {"name": "slow", "labels": {"holt.a2a.command": "sleep 600"}})
    body = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(d.request, "POST", f"/agents/{box['id']}/a2a/message:send", body, headers={"A2A-Version": "1.0"})
        wait_for(lambda: [t for t in d.ok("GET", "/holt/v1/task-runs")["tasks"] if t["state"] == "running"])
        began = time.monotonic()
        assert d.stop() == 0
        assert time.monotonic() - began < 15 and waiting.result()[1]["task"]["status"]["state"] == "TASK_STATE_WORKING"
    d = native(tmp_path)
    d.clear()
    assert d.stop() == 0


# --- kill -9 ---


def test_tasks_pushes_and_keys_outlive_a_kill(tmp_path, receiver):
    d = native(tmp_path, "--webhook-hosts", "127.0.0.1")
    try:
        box = d.ok("POST", "/holt/v1/sandboxes", {"name": "lasting", "labels": {"holt.a2a.command": WORKER}})
        body = message("wait here")
        body["configuration"] = {"pushNotificationConfig": {"url": receiver.url}}
        both = f"{RUNTIME},{IDEMPOTENCY}"
        status, first, _ = seed(d, "POST", "/agents/lasting/v1/messages:send", body, extensions=both)
        assert status == 202
        wait_for(lambda: d.ok("GET", f"/holt/v1/task-runs/{first['id']}")["state"] == "running")
        keys = keys_of(d, "lasting")
        told = {**message("after it"), "configuration": {"pushNotificationConfig": {"url": receiver.url}}}
        status, second, _ = seed(d, "POST", "/agents/lasting/v1/messages:send", told)
        d.kill()  # what was replied is on disk, the receiver too
        assert status == 202
        d = native(tmp_path, "--webhook-hosts", "127.0.0.1")
        assert keys_of(d, "lasting") == keys
        status, again, h = seed(d, "POST", "/agents/lasting/v1/messages:send", body, extensions=both)
        assert (status, again["id"], h["idempotent-replayed"]) == (202, first["id"], "true")
        wait_for(lambda: d.request("POST", f"/holt/v1/sandboxes/{box['id']}/execs", {"command": ["touch", "/tmp/go"]})[0] < 300)
        ended(d, "lasting", first)
        ended(d, "lasting", second)
        out = seed(d, "GET", f"/agents/lasting/v1/tasks/{first['id']}/artifacts")[1]["artifacts"][0]["artifact"]["data"]
        assert out == "working on wait here\n"
        wait_for(lambda: {json.loads(g[1])["id"] for g in receiver.got if b'"completed"' in g[1]} == {first["id"], second["id"]})
        check_push(d, "lasting", receiver.got[-1], "completed")
    finally:
        d.clear()
        d.stop()


# --- beside the hub ---


def test_the_hubs_paths_are_beside(holtd, agent):
    """X-008: what follows the name tells them apart."""
    made = holtd.request("POST", "/agents/register", {"name": "plain", "role": "worker"})
    assert made[0] in (200, 201), made
    assert holtd.ok("GET", "/agents/plain")["name"] == "plain"
    assert holtd.ok("GET", "/agents/plain/v1/tasks")["tasks"]
    assert holtd.ok("GET", "/agents/plain/.well-known/agent-card.json")["name"] == "plain"
    assert holtd.request("GET", "/agents/plain/checkpoints")[0] == 200
