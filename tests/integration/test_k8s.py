"""The Kubernetes calls of agent-sandbox clients, without a cluster: the SDK from PyPI and kubectl, unmodified, and raw."""
import datetime
import http.client
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest
from k8s_agent_sandbox import SandboxClient
from k8s_agent_sandbox.exceptions import SandboxClaimFailedError, SandboxRequestError, SandboxWarmPoolNotFoundError
from k8s_agent_sandbox.models import SandboxDirectConnectionConfig
from kubernetes import client as kubernetes
from kubernetes import config as kubeconfig

from daemon import native, wait_for

POOL = "python-pool"
EXT, CORE = "/apis/extensions.agents.x-k8s.io/v1beta1", "/apis/agents.x-k8s.io/v1beta1"
CLAIMS = f"{EXT}/namespaces/default/sandboxclaims"
BOXES = f"{CORE}/namespaces/default/sandboxes"


def certificate(tmp):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{tmp}/key.pem", "-out", f"{tmp}/cert.pem"], check=True, capture_output=True)
    return f"{tmp}/cert.pem", f"{tmp}/key.pem"


class K8s:
    """A holtd as clients of a cluster see it."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.cert, self.key = certificate(tmp)
        self.start()
        self.d.ok("POST", "/holt/v1/templates", {"name": POOL, "env": {"FROM": "template", "BOTH": "template"}, "labels": {"kind": "python"}})

    def start(self):
        self.d = native(self.tmp / "d", "--tls-cert", self.cert, "--tls-key", self.key)

    def config(self, token=None):
        """A kubeconfig that names this holtd.  kubectl sends tokens over TLS alone."""
        path = self.tmp / f"config-{token or 'admin'}"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "holt",
            "clusters": [{"name": "holt", "cluster": {"server": f"https://127.0.0.1:{self.d.port}", "certificate-authority": self.cert}}],
            "users": [{"name": "me", "user": {"token": token or self.d.token}}],
            "contexts": [{"name": "holt", "context": {"cluster": "holt", "user": "me"}}]}))
        return str(path)

    def sdk(self, token=None, port=8888):
        api = kubeconfig.new_client_from_config(self.config(token))
        headers = {"Authorization": f"Bearer {token or self.d.token}"}
        url = f"https://127.0.0.1:{self.d.port}"
        return SandboxClient(SandboxDirectConnectionConfig(api_url=url, extra_headers=headers, ca_cert=self.cert, server_port=port), api_client=api)

    def call(self, method, path, body=None, **more):
        return self.d.request(method, path, body, **more)[:2]

    def claim(self, name, status=201, pool=POOL, space="default", token="admin", meta=None, **spec):
        got, reply = self.call("POST", f"{EXT}/namespaces/{space}/sandboxclaims", {"metadata": {"name": name, **(meta or {})}, "spec": {"warmPoolRef": {"name": pool}, **spec}}, token=token)
        assert got == status, reply
        return reply

    def get(self, name, path=CLAIMS, token="admin"):
        status, reply = self.call("GET", f"{path}/{name}", token=token)
        return reply if status == 200 else None

    def ready(self, name, reason="DependenciesReady"):
        return wait_for(lambda: reason_of(self.get(name)) == reason and self.get(name))

    def patch(self, path, change, kind="merge-patch"):
        return self.call("PATCH", path, json.dumps(change).encode(), headers={"Content-Type": f"application/{kind}+json"})

    def remove(self, name):
        assert self.call("DELETE", f"{CLAIMS}/{name}")[0] == 200

    def to(self, name, method, path, body=None, port=None, space=None, token="admin", **headers):
        h = {"X-Sandbox-ID": name, **({"X-Sandbox-Port": str(port)} if port else {}), **({"X-Sandbox-Namespace": space} if space else {}), **headers}
        return self.call(method, path, body, token=token, headers=h)

    def watch(self, query="", path=CLAIMS, token="admin", **headers):
        return Watch(self.d, f"{path}?watch=true&{query}", token, headers)

    def token(self, name, role="operator", **more):
        return self.d.ok("POST", "/holt/v1/tokens", {"name": name, "role": role, **more})["token"]


class Watch:
    def __init__(self, d, path, token, headers):
        self.c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=30)
        self.c.request("GET", path, headers={"Authorization": f"Bearer {d.token if token == 'admin' else token}", **headers})
        self.r = self.c.getresponse()

    def __enter__(self):
        assert self.r.status == 200, self.r.read()
        return self

    def __exit__(self, *_):
        self.c.close()

    def next(self):
        line = self.r.readline()
        return json.loads(line) if line else None

    def until(self, kind, name):
        while True:
            ev = self.next()
            assert ev, "the watch ended"
            if ev["type"] == kind and ev["object"].get("metadata", {}).get("name") == name:
                return ev["object"]


def condition(o, kind="Ready"):
    return next((c for c in ((o or {}).get("status") or {}).get("conditions", []) if c["type"] == kind), None)


def reason_of(o):
    return (condition(o) or {}).get("reason")


def soon(seconds):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.fixture(scope="module")
def k(tmp_path_factory):
    made = K8s(tmp_path_factory.mktemp("k8s"))
    yield made
    made.d.stop()


@pytest.fixture(autouse=True)
def nothing_left(request):
    yield
    if "k" in request.fixturenames and "box" not in request.fixturenames:
        k = request.getfixturevalue("k")
        for o in k.call("GET", f"{EXT}/sandboxclaims")[1]["items"]:
            meta = o["metadata"]
            if meta["name"] != "routed":
                k.call("DELETE", f"{EXT}/namespaces/{meta['namespace']}/sandboxclaims/{meta['name']}", {"preconditions": {"uid": meta["uid"]}})


# --- the SDK ---


def test_sdk_makes_uses_and_ends_a_sandbox(k):
    with k.sdk() as c:
        box = c.create_sandbox(POOL, labels={"team": "blue"}, env={"MINE": "claim", "BOTH": "claim"}, pod_labels={"pod": "yes"})
        assert box.status()[0] == "SandboxReady"
        assert box.commands.run("echo 'hello  world'").stdout == "hello  world\n"
        done = box.commands.run("sh -c 'echo $MINE $FROM $BOTH; pwd; echo no >&2; exit 3'")
        assert (done.stdout, done.stderr, done.exit_code) == ("claim template claim\n/workspace\n", "no\n", 3)
        box.files.write("d/x.txt", "content")
        assert box.files.read("d/x.txt") == b"content"
        assert [(f.name, f.size, f.type) for f in box.files.list("d")] == [("x.txt", 7, "file")]
        assert [(f.name, f.type) for f in box.files.list(".")] == [("d", "directory")]
        assert box.files.exists("d/x.txt") and not box.files.exists("d/none")
        assert c.list_all_sandboxes(label_selector="team=blue") == [box.claim_name]
        assert box.claim_name in c.list_all_sandboxes() and c.list_all_sandboxes(label_selector="team!=blue,team") == []
        labels = k.get(box.sandbox_id, BOXES)["metadata"]["labels"]
        assert labels == {"kind": "python", "pod": "yes"}
        name = box.claim_name
        box.terminate()
        assert name not in c.list_all_sandboxes() and k.get(name, BOXES) is None


def test_sdk_large_and_binary_files_and_a_stream(k, tmp_path):
    with k.sdk() as c:
        box = c.create_sandbox(POOL)
        data = os.urandom(3 << 20)
        box.files.write("big.bin", data)
        assert box.files.read("big.bin") == data
        with open(tmp_path / "f", "wb+") as f:
            f.write(data)
            f.seek(0)
            box.files.write("streamed.bin", f)
        with open(tmp_path / "back", "wb") as f:
            assert box.files.read_to("streamed.bin", f) == len(data)
        assert (tmp_path / "back").read_bytes() == data
        with pytest.raises(SandboxRequestError):
            box.files.read("../etc/passwd", allow_unsafe_paths=True)


def test_sdk_timeouts_of_commands(k):
    with k.sdk() as c:
        done = c.create_sandbox(POOL).commands.run("sleep 60", command_timeout=0.5)
        assert done.timed_out and done.exit_code == 124


def test_sdk_adopts_a_named_claim_and_finds_it_again(k):
    c = k.sdk()
    first = c.create_sandbox(POOL, claim_name="by-name")
    first.files.write("mark", b"1")
    with pytest.raises(kubernetes.ApiException) as e:
        k.sdk().create_sandbox(POOL, claim_name="by-name")
    assert e.value.status == 409 and json.loads(e.value.body)["reason"] == "AlreadyExists"
    assert k.sdk().create_sandbox(POOL, claim_name="by-name", adopt_existing=True).files.read("mark") == b"1"
    assert k.sdk().get_sandbox("by-name").files.read("mark") == b"1"
    k.sdk().delete_sandbox("by-name")
    assert k.get("by-name") is None


def test_sdk_is_told_at_once_why_a_claim_is_refused(k):
    c = k.sdk()
    began = time.monotonic()
    with pytest.raises(SandboxWarmPoolNotFoundError, match='SandboxWarmPool "none" not found'):
        c.create_sandbox("none")
    with pytest.raises(SandboxClaimFailedError, match="VolumeClaimTemplatesError"):
        c.create_sandbox(POOL, volume_claim_templates=[{"metadata": {"name": "a"}, "spec": {}}])
    with pytest.raises(SandboxClaimFailedError, match="InvalidMetadata"):
        c.create_sandbox(POOL, pod_labels={"agents.x-k8s.io/created-by": "me"})
    k.d.ok("POST", "/holt/v1/templates", {"name": "no-image", "image": "nowhere:1"})
    with pytest.raises(SandboxClaimFailedError, match="InvalidConfiguration"):
        c.create_sandbox("no-image")
    assert time.monotonic() - began < 60  # not the 180 s that it waits for others
    assert c.list_all_sandboxes() == []  # the SDK takes back what has failed


def test_sdk_shutdown_time(k):
    c = k.sdk()
    box = c.create_sandbox(POOL, shutdown_after_seconds=2)
    assert k.d.ok("GET", f"/holt/v1/sandboxes/{urllib.parse.quote('default/' + box.claim_name, safe='')}")["ttl_ms"] <= 2000
    wait_for(lambda: k.get(box.claim_name) is None and k.get(box.claim_name, BOXES) is None)


# --- claims ---


def test_a_claim_waits_for_its_pool(k):
    assert k.claim("early", pool="late")["status"]["conditions"] == []
    o = k.ready("early", "WarmPoolNotFound")
    assert condition(o)["status"] == "False" and "sandbox" not in o["status"]
    k.d.ok("POST", "/holt/v1/templates", {"name": "late"})
    assert k.ready("early")["status"]["sandbox"] == {"name": "early"}
    k.remove("early")


def test_expired_claims_say_so_or_go(k):
    k.claim("kept", lifecycle={"shutdownTime": soon(1)})
    k.claim("gone", lifecycle={"shutdownTime": soon(1), "shutdownPolicy": "Delete"})
    k.claim("never-made", pool="none", lifecycle={"shutdownTime": soon(1)})
    k.ready("never-made", "ClaimExpired")
    k.claim("kept-then-gone", lifecycle={"shutdownTime": soon(1), "ttlSecondsAfterFinished": 0})
    assert condition(k.ready("kept", "ClaimExpired"))["status"] == "False"
    wait_for(lambda: k.get("gone") is None and k.get("kept-then-gone") is None)
    assert k.get("kept", BOXES) is None and k.get("kept")
    k.remove("kept")


def test_a_claim_says_when_its_sandbox_is_gone_or_suspended(k):
    k.claim("lost")
    k.ready("lost")
    ref = urllib.parse.quote("default/lost", safe="")
    k.d.ok("POST", f"/holt/v1/sandboxes/{ref}/stop", {"force": True})
    assert condition(k.ready("lost", "SandboxSuspended"))["status"] == "False"
    k.d.ok("POST", f"/holt/v1/sandboxes/{ref}/start")
    k.ready("lost")
    k.d.ok("DELETE", f"/holt/v1/sandboxes/{ref}")
    k.ready("lost", "SandboxExpired")
    k.remove("lost")


def test_claims_outlive_holtd(k):
    k.claim("stays", meta={"labels": {"a": "b"}, "annotations": {"note": "x"}}, env=[{"name": "E", "value": "v"}])
    k.claim("ends", lifecycle={"shutdownTime": soon(3)})
    before = k.ready("stays")
    k.ready("ends")
    assert k.to("stays", "POST", "/execute", {"command": "sh -c 'echo 1 > mark'"})[0] == 200
    k.d.kill()
    time.sleep(3)  # the time of "ends" passes without us
    k.start()
    after = k.ready("stays")
    assert {**after["metadata"], "resourceVersion": ""} == {**before["metadata"], "resourceVersion": ""} and after["spec"] == before["spec"]
    wait_for(lambda: k.to("stays", "GET", "/download/mark")[1] == "1\n")  # holtd connects to it again
    k.ready("ends", "ClaimExpired")
    k.remove("ends")
    k.remove("stays")
    wait_for(lambda: k.get("stays", BOXES) is None)


def test_what_cannot_be_a_claim_is_refused(k):
    def refused(status, reason, body, path=CLAIMS, **more):
        got, reply = k.call("POST", path, body, **more)
        assert (got, reply["kind"], reply["reason"], reply["code"]) == (status, "Status", reason, status), reply
        return reply
    pool = {"warmPoolRef": {"name": POOL}}
    assert refused(422, "Invalid", {"metadata": {"name": "a"}, "spec": {}})["details"]["causes"][0]["field"] == "spec.warmPoolRef.name"
    refused(422, "Invalid", {"metadata": {}, "spec": pool})
    refused(422, "Invalid", {"metadata": {"name": "No_Name"}, "spec": pool})
    refused(422, "Invalid", {"metadata": {"name": "a", "labels": {"a": "b c"}}, "spec": pool})
    refused(422, "Invalid", {"metadata": {"name": "a", "finalizers": ["x/y"]}, "spec": pool})
    refused(422, "Invalid", {"metadata": {"name": "a"}, "spec": {**pool, "lifecycle": {"shutdownTime": "tomorrow"}}})
    refused(422, "Invalid", {"metadata": {"name": "a"}, "spec": {**pool, "lifecycle": {"shutdownPolicy": "Never"}}})
    refused(422, "Invalid", {"metadata": {"name": "a"}, "spec": {**pool, "env": [{"name": "A", "valueFrom": {}}]}})
    refused(400, "BadRequest", {"kind": "Sandbox", "metadata": {"name": "a"}, "spec": pool})
    refused(400, "BadRequest", {"metadata": {"name": "a", "namespace": "other"}, "spec": pool})
    refused(400, "BadRequest", b"{", headers={"Content-Type": "application/json"})
    refused(400, "BadRequest", {"metadata": {"name": "a"}, "spec": pool}, f"{EXT}/namespaces/Bad_Name/sandboxclaims")
    refused(401, "Unauthorized", {"metadata": {"name": "a"}, "spec": pool}, token=None)
    refused(403, "Forbidden", {"metadata": {"name": "a"}, "spec": pool}, token=k.token("looks", "observer"))
    assert k.call("GET", f"{CLAIMS}/none")[1]["message"] == 'sandboxclaims.extensions.agents.x-k8s.io "none" not found'
    assert k.call("GET", f"{EXT}/namespaces/default/others")[1]["reason"] == "NotFound"
    assert k.call("GET", f"{CLAIMS}?fieldSelector=spec.x%3Da")[1]["message"] == "field label not supported: spec.x"
    assert k.call("GET", f"{CLAIMS}?labelSelector=a%20in%20b")[0] == 400


def test_dry_runs_change_nothing(k):
    assert k.call("POST", f"{CLAIMS}?dryRun=All", {"metadata": {"name": "dry"}, "spec": {"warmPoolRef": {"name": POOL}}})[0] == 201
    assert k.get("dry") is None


def test_generated_names(k):
    made = k.call("POST", CLAIMS, {"metadata": {"generateName": "gen-"}, "spec": {"warmPoolRef": {"name": POOL}}})[1]["metadata"]["name"]
    assert made.startswith("gen-") and len(made) == 9
    k.remove(made)


def test_patches_and_versions(k):
    k.claim("p", meta={"labels": {"a": "1"}})
    o = k.ready("p")
    status, o = k.patch(f"{CLAIMS}/p", {"metadata": {"labels": {"b": "2"}, "annotations": {"n": "x"}}})
    assert status == 200 and o["metadata"]["labels"] == {"a": "1", "b": "2"} and o["metadata"]["annotations"] == {"n": "x"}
    assert k.patch(f"{CLAIMS}/p", {"metadata": {"labels": {"a": None}}})[1]["metadata"]["labels"] == {"b": "2"}
    assert k.patch(f"{CLAIMS}/p", [{"op": "replace", "path": "/metadata/labels/b", "value": "3"}, {"op": "add", "path": "/metadata/labels/e~1f", "value": "4"}],
                   "json-patch")[1]["metadata"]["labels"] == {"b": "3", "e/f": "4"}
    assert k.patch(f"{CLAIMS}/p", [{"op": "test", "path": "/metadata/name", "value": "q"}], "json-patch")[0] == 422
    assert k.patch(f"{CLAIMS}/p", {"spec": {"warmPoolRef": {"name": "other"}}})[0] == 422
    assert k.patch(f"{CLAIMS}/p", {}, "strategic-merge-patch")[1]["reason"] == "UnsupportedMediaType"
    stale = {**o, "metadata": {**o["metadata"], "labels": {"late": "yes"}}}
    status, reply = k.call("PUT", f"{CLAIMS}/p", stale)
    assert (status, reply["reason"]) == (409, "Conflict")
    now = k.get("p")
    now["metadata"]["labels"] = {"put": "yes"}
    assert k.call("PUT", f"{CLAIMS}/p", now)[1]["metadata"]["labels"] == {"put": "yes"}
    status, o = k.patch(f"{CLAIMS}/p", {"spec": {"lifecycle": {"shutdownTime": soon(1)}}})
    assert status == 200 and o["metadata"]["generation"] == 2
    k.ready("p", "ClaimExpired")
    k.remove("p")


def test_deletes_check_who_is_meant(k):
    o = k.claim("d1", meta={"labels": {"of": "d"}})
    k.claim("d2", meta={"labels": {"of": "d"}})
    k.claim("d3")
    status, reply = k.call("DELETE", f"{CLAIMS}/d1", {"preconditions": {"uid": "other"}})
    assert (status, reply["reason"]) == (409, "Conflict") and k.ready("d1")
    reply = k.call("DELETE", f"{CLAIMS}/d1", {"preconditions": {"uid": o["metadata"]["uid"]}})[1]
    assert reply["status"] == "Success" and reply["details"]["uid"] == o["metadata"]["uid"]
    assert k.call("DELETE", f"{CLAIMS}/d1")[0] == 404
    assert k.call("DELETE", f"{CLAIMS}?labelSelector=of%3Dd")[0] == 200
    assert k.get("d2") is None and k.get("d3")
    k.remove("d3")


def test_a_claim_that_is_deleted_while_its_sandbox_is_made(k):
    for i in range(8):
        k.claim(f"fast-{i}", env=[{"name": "A", "value": "b"}])
        k.remove(f"fast-{i}")
    assert k.call("GET", CLAIMS)[1]["items"] == []
    wait_for(lambda: k.call("GET", BOXES)[1]["items"] == [])


# --- watches ---


def test_a_watch_is_a_view_of_the_log(k):
    start = k.call("GET", CLAIMS)[1]["metadata"]["resourceVersion"]
    with k.watch(f"resourceVersion={start}") as w:
        made = k.claim("w", env=[{"name": "S", "value": "secret"}])
        assert w.until("ADDED", "w")["metadata"]["uid"] == made["metadata"]["uid"]
        ready = w.until("MODIFIED", "w")
        while reason_of(ready) != "DependenciesReady":
            ready = w.until("MODIFIED", "w")
        assert ready["status"]["sandbox"]["name"] == "w" and ready["spec"] == k.get("w")["spec"]
        assert int(ready["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        k.remove("w")
        gone = w.until("DELETED", "w")
    with k.watch(f"resourceVersion={start}&fieldSelector=metadata.name%3Dw") as w:  # the same again, from the log
        seen = [w.next() for _ in range(2)]
        while seen[-1]["type"] != "DELETED":
            seen.append(w.next())
        assert seen[0]["type"] == "ADDED" and seen[-1]["object"]["metadata"] == gone["metadata"]
    with k.watch(f"resourceVersion={gone['metadata']['resourceVersion']}&timeoutSeconds=1&fieldSelector=metadata.name%3Dw") as w:
        assert w.next() is None  # nothing twice, and it ends in time
    log = json.dumps(k.d.ok("GET", "/holt/v1/events?limit=1000&object=claim/"))
    assert '"S"' in log and "secret" not in log


def test_a_watch_begins_with_what_there_is(k):
    k.claim("here", meta={"labels": {"a": "b"}})
    k.ready("here")
    with k.watch("resourceVersion=0&labelSelector=a%3Db") as w:
        assert w.next()["object"]["metadata"]["name"] == "here"
        k.claim("other")
        k.patch(f"{CLAIMS}/here", {"metadata": {"labels": {"a": "c"}}})
        assert w.next()["type"] == "DELETED"  # it fits no more; "other" never did
    with k.watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true") as w:
        assert {w.next()["object"]["metadata"]["name"] for _ in range(2)} == {"here", "other"}
        end = w.next()
        assert end["type"] == "BOOKMARK" and end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        k.remove("here")
        k.remove("other")
        last = w.until("DELETED", "other")["metadata"]["resourceVersion"]
        mark = w.next()
        while mark["type"] != "BOOKMARK":
            mark = w.next()
        assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(last)


def test_a_version_that_the_log_has_no_more_is_gone(tmp_path):
    k = K8s(tmp_path)
    try:
        k.claim("old")
        k.ready("old")
        k.d.stop()
        k.d = native(tmp_path / "d", "--events-keep-count", "3", "--tls-cert", k.cert, "--tls-key", k.key)
        old = k.get("old")["metadata"]["resourceVersion"]
        wait_for(lambda: k.d.ok("GET", "/holt/v1/events?limit=1")["events"][0]["seq"] > 2)
        with k.watch("resourceVersion=1") as w:
            ev = w.next()
            assert ev["type"] == "ERROR" and (ev["object"]["code"], ev["object"]["reason"]) == (410, "Expired")
        with k.watch(f"resourceVersion={old}") as w:
            k.remove("old")
            w.until("DELETED", "old")
        with k.watch("resourceVersion=999999") as w:
            ev = w.next()
            assert ev["type"] == "ERROR" and (ev["object"]["code"], ev["object"]["reason"]) == (410, "Expired")
            assert w.next() is None
    finally:
        k.d.stop()


# --- who sees what ---


def test_two_tenants_never_see_each_others_claims(k):
    a, b = k.token("ka", tenant="kta"), k.token("kb", tenant="ktb")
    for token in (a, b):
        k.d.ok("POST", "/holt/v1/templates", {"name": "own"}, token=token)
    with k.watch("resourceVersion=0", token=b) as w, k.watch("resourceVersion=0", path=BOXES, token=b) as boxes:
        k.claim("same", pool="own", token=a, env=[{"name": "S", "value": "of-a"}])
        wait_for(lambda: reason_of(k.get("same", token=a)) == "DependenciesReady")
        k.claim("same", pool="own", token=b)  # the name is free where b looks
        wait_for(lambda: reason_of(k.get("same", token=b)) == "DependenciesReady")
        mine = k.get("same", token=b)["metadata"]["uid"]
        assert w.next()["object"]["metadata"]["uid"] == mine  # the first that b's watch tells is b's
        assert boxes.next()["object"]["metadata"]["ownerReferences"][0]["uid"] == mine
    assert [len(k.call("GET", CLAIMS, token=t)[1]["items"]) for t in (a, b)] == [1, 1]
    assert k.to("same", "POST", "/execute", {"command": "sh -c 'echo a > /workspace/of'"}, token=a)[0] == 200
    assert k.to("same", "GET", "/exists/of", token=b)[1]["exists"] is False
    k.claim("only-a", pool="own", token=a)
    wait_for(lambda: k.get("only-a", BOXES, token=a))
    for method, path, body in (("GET", f"{CLAIMS}/only-a", None), ("DELETE", f"{CLAIMS}/only-a", None), ("GET", f"{BOXES}/only-a", None), ("DELETE", f"{BOXES}/only-a", None)):
        assert k.call(method, path, body, token=b)[0] == 404
    assert k.to("only-a", "GET", "/", token=b) == (404, {"detail": "Sandbox not found: only-a"})
    assert k.call("DELETE", f"{EXT}/namespaces/default/sandboxclaims", token=b)[0] == 200
    assert {c["metadata"]["name"] for c in k.call("GET", CLAIMS, token=a)[1]["items"]} == {"same", "only-a"}
    # an operator of the installation sees all, but the values of another's environment
    both = [c for c in k.call("GET", CLAIMS)[1]["items"] if c["metadata"]["name"] == "same"]
    assert [c["spec"].get("env") for c in both] == [[{"name": "S"}]]
    applied = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "value-of-a", "other": "x"}}}
    assert k.call("PATCH", f"{CLAIMS}/same", json.dumps(applied).encode(), token=a, headers={"Content-Type": "application/merge-patch+json"})[0] == 200
    both = [c["metadata"].get("annotations") for c in k.call("GET", CLAIMS)[1]["items"] if c["metadata"]["name"] == "same"]
    assert {"other": "x"} in both and "value-of-a" not in json.dumps(k.d.ok("GET", "/holt/v1/events?limit=1000&object=claim/"))
    assert k.get("same", token=a)["metadata"]["annotations"] == applied["metadata"]["annotations"]
    assert k.get("same", token=a)["spec"]["env"] == [{"name": "S", "value": "of-a"}]
    assert k.call("DELETE", f"{EXT}/namespaces/default/sandboxclaims", token=a)[0] == 200


def test_agents_see_their_own_claims(k):
    one, two = k.token("agent-one", "agent", agent="agent-one"), k.token("agent-two", "agent", agent="agent-two")
    k.d.ok("POST", "/holt/v1/templates", {"name": "all", "shared": True})
    k.claim("mine", pool="all", token=one)
    wait_for(lambda: reason_of(k.get("mine", token=one)) == "DependenciesReady")
    assert k.call("GET", CLAIMS, token=two)[1]["items"] == [] and k.get("mine")
    assert k.call("DELETE", f"{CLAIMS}/mine", token=two)[0] == 404
    assert k.call("DELETE", f"{CLAIMS}/mine", token=one)[0] == 200


def test_namespaces_part_what_one_sees(k):
    k.claim("n", space="one")
    k.claim("n", space="two")
    names = lambda path: sorted((c["metadata"]["namespace"], c["metadata"]["name"]) for c in k.call("GET", path)[1]["items"])
    assert names(f"{EXT}/sandboxclaims") == [("one", "n"), ("two", "n")] and names(f"{EXT}/namespaces/one/sandboxclaims") == [("one", "n")]
    wait_for(lambda: k.get("n", f"{CORE}/namespaces/one/sandboxes"))
    assert k.to("n", "GET", "/", space="one")[0] == 200
    assert k.to("n", "GET", "/")[0] == 404  # in "default" there is none
    for space in ("one", "two"):
        assert k.call("DELETE", f"{EXT}/namespaces/{space}/sandboxclaims/n")[0] == 200


# --- the router ---


@pytest.fixture(scope="module")
def box(k):
    k.claim("routed", env=[{"name": "SANDBOX_MODE", "value": "on"}, {"name": "SANDBOX_API_TOKEN", "value": "hidden"}, {"name": "OTHER", "value": "x"}])
    k.ready("routed")
    yield "routed"
    k.remove("routed")


def test_router_refuses_what_it_cannot_route(k, box):
    assert k.to("", "GET", "/") == (400, {"detail": "X-Sandbox-ID header is required."})
    assert k.to("A_b", "GET", "/") == (400, {"detail": "Invalid sandbox ID format."})
    assert k.to(box, "GET", "/", space="A_b") == (400, {"detail": "Invalid namespace format."})
    assert k.to(box, "GET", "/", port="x") == (400, {"detail": "Invalid port format."})
    assert k.to(box, "GET", "/", port=70000) == (400, {"detail": "Invalid port format."})
    status, reply = k.to(box, "GET", "/", token=None)
    assert status == 401 and "detail" in reply
    assert k.to(box, "GET", "/", token="holt_wrong")[0] == 401
    assert k.to(box, "POST", "/execute", {"command": "true"}, token=k.token("only-looks", "observer"))[0] == 403
    status, reply = k.to(box, "GET", "/x", port=4711)
    assert status == 502 and "port 4711" in reply["detail"]
    uid = k.get(box, BOXES)["metadata"]["uid"]
    assert k.to(box, "GET", "/", **{"X-Sandbox-UID": uid})[0] == 200
    assert k.to(box, "GET", "/", **{"X-Sandbox-UID": "other"})[0] == 404


def test_router_reaches_ports_without_credentials(k, box):
    assert upload(k, box, "serve.py", b"""
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        out = (self.command + " " + self.path + chr(10) + str(self.headers)).encode() + body
        self.send_response(201); self.send_header("Content-Length", str(len(out))); self.end_headers(); self.wfile.write(out)
http.server.HTTPServer(("127.0.0.1", 9000), H).serve_forever()
""")[0] == 200
    served = threading.Thread(target=lambda: k.to(box, "POST", "/execute", {"command": "python3 serve.py", "timeout_seconds": 20}), daemon=True)
    served.start()
    ask = lambda: k.to(box, "POST", "/holt/v1/tokens?a=b", b"body", port=9000, Cookie="holt_session=x", **{"X-Own": "1"})
    wait_for(lambda: ask()[0] == 201)
    text = ask()[1]
    assert text.startswith("POST /holt/v1/tokens?a=b\n") and text.endswith("body")  # our own path is the sandbox's here
    assert "x-own: 1" in text.lower() and "authorization" not in text.lower() and "cookie" not in text.lower()


def upload(k, box, name, data):
    form = f'------edge\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n------edge--\r\n"
    return k.to(box, "POST", "/upload", form, **{"Content-Type": "multipart/form-data; boundary=----edge"})


def test_legacy_runtime(k, box):
    assert k.to(box, "GET", "/")[1]["status"] == "ok"
    assert upload(k, box, "a/b c%2F.txt", b"1")[0] == 200
    assert k.to(box, "GET", "/download/a%2Fb%20c%252F.txt")[1] == "1"
    assert [f["name"] for f in k.to(box, "GET", "/list/a")[1]] == ["b c%2F.txt"]
    assert {"a"} <= {f["name"] for f in k.to(box, "GET", "/list/")[1]}
    assert k.to(box, "GET", "/exists/a") == (200, {"path": "a", "exists": True})
    status, reply = k.to(box, "GET", "/download/none")
    assert status == 404 and "message" in reply
    for path in ("%2Fetc%2Fpasswd", "..%2Fetc%2Fpasswd", "a%2F..%2F..%2Fetc%2Fpasswd", "%2Fworkspaces"):
        for verb in ("download", "list", "exists"):
            assert k.to(box, "GET", f"/{verb}/{path}")[0] == 403, (verb, path)
    assert k.to(box, "POST", "/execute", {"command": "ln -sf /etc/passwd link"})[1]["exit_code"] == 0
    assert k.to(box, "GET", "/download/link")[0] == 403
    assert upload(k, box, "../x", b"1")[0] == 403
    assert k.to(box, "POST", "/upload", b"x", **{"Content-Type": "text/plain"})[0] == 400
    run = lambda line: k.to(box, "POST", "/execute", {"command": line})[1]
    assert run("printf %s\\| 'a b' \"c \\\" d\" e\\ f ''")["stdout"] == 'a b|c " d|e f||'
    assert run("echo $HOME; false")["stdout"] == "$HOME; false\n"  # words, no shell
    assert run("no-such-program")["exit_code"] == 1 and run("'open")["stderr"].endswith("No closing quotation") and run("")["exit_code"] == 1
    assert k.to(box, "POST", "/execute", {"command": 1})[0] == 422
    assert k.to(box, "POST", "/execute", {"command": "true", "timeout_seconds": -1})[0] == 422


def test_sandboxd(k, box):
    go = lambda *a, **h: k.to(box, *a, port=8080, **h)
    raw = {"Content-Type": "application/octet-stream"}
    assert go("GET", "/v1/health")[1]["status"] == "ok"
    assert go("GET", "/v1/metadata") == (200, {"env": {"SANDBOX_MODE": "on"}})
    assert go("PUT", "/v1/files/s%2Fx.bin?mode=0600", b"0123456789", **raw)[0] == 204
    assert go("GET", "/v1/files/s%2Fx.bin")[1] == "0123456789"
    assert go("GET", "/v1/files/s%2Fx.bin", Range="bytes=2-4") == (206, "234")
    assert go("GET", "/v1/files/s%2Fx.bin", Range="bytes=20-")[0] == 416
    listing = go("GET", "/v1/files/s")[1]
    assert listing["path"] == "s" and [(e["name"], e["size"], e["type"], e["mode"]) for e in listing["entries"]] == [("x.bin", 10, "file", "0600")]
    assert go("DELETE", "/v1/files/s")[1]["code"] == "CONFLICT"
    assert go("DELETE", "/v1/files/s%2Fx.bin")[0] == 204 and go("DELETE", "/v1/files/s?recursive=true")[0] == 204
    assert go("GET", "/v1/files/s")[1]["code"] == "NOT_FOUND"
    assert go("GET", "/v1/files/%2E%2E%2Fetc")[1]["code"] == "PERMISSION_DENIED"
    assert go("DELETE", "/v1/files/%2E?recursive=true")[0] == 400
    assert go("PUT", "/v1/files/x?mode=9", b"", **raw)[0] == 400
    assert go("HEAD", "/v1/files/none")[0] == 404


def test_paths_without_the_header_are_the_others(k):
    assert k.call("GET", "/v1/health")[1] == {"status": "ok"}  # fluid's


# --- Sandboxes, templates, pools ---


def test_sandboxes(k):
    pod = lambda **more: {"podTemplate": {"spec": {"containers": [{"name": "a", "image": "host", "env": [{"name": "E", "value": "1"}],
                                                                  "resources": {"limits": {"memory": "256Mi", "cpu": "500m"}}, **more}]}}}
    with k.watch("resourceVersion=0", path=BOXES) as w:
        status, o = k.call("POST", BOXES, {"metadata": {"name": "own", "labels": {"a": "b"}}, "spec": pod(command=["sh", "-c", "echo $E > made"])})
        assert status == 201 and condition(o)["status"] == "True" and o["metadata"]["labels"] == {"a": "b"}, o
        assert o["spec"]["podTemplate"]["spec"]["containers"][0]["resources"]["limits"] == {"memory": str(256 << 20), "cpu": "500m"}
        w.until("ADDED", "own")
        wait_for(lambda: k.to("own", "GET", "/download/made")[1] == "1\n")
        assert k.call("POST", BOXES, {"metadata": {"name": "own"}, "spec": pod()})[1]["reason"] == "AlreadyExists"
        status, o = k.patch(f"{BOXES}/own", {"spec": {"operatingMode": "Suspended"}})
        assert status == 200 and reason_of(o) == "SandboxSuspended" and condition(o, "Suspended")["status"] == "True"
        assert k.to("own", "GET", "/download/made")[0] == 502
        assert condition(k.patch(f"{BOXES}/own", {"spec": {"operatingMode": "Running"}})[1])["status"] == "True"
        assert k.to("own", "GET", "/download/made")[1] == "1\n"  # its files are as they were
        assert k.patch(f"{BOXES}/own", {"metadata": {"labels": {"c": "d"}}})[1]["metadata"]["labels"] == {"a": "b", "c": "d"}
        assert k.patch(f"{BOXES}/own", {"spec": {"podTemplate": {"spec": {"containers": []}}}})[0] == 422
        assert k.call("DELETE", f"{BOXES}/own")[0] == 200
        w.until("DELETED", "own")
    assert k.get("own", BOXES) is None
    for spec in (pod(image="nowhere:1"), {}, {**pod(), "service": True}, {**pod(), "volumeClaimTemplates": [{}]}):
        status, reply = k.call("POST", BOXES, {"metadata": {"name": "bad"}, "spec": spec})
        assert (status, reply["reason"]) == (422, "Invalid"), reply


def test_templates_and_pools(k):
    T, P = f"{EXT}/namespaces/default/sandboxtemplates", f"{EXT}/namespaces/default/sandboxwarmpools"
    pod = {"metadata": {"labels": {"l": "1"}}, "spec": {"containers": [{"image": "host", "env": [{"name": "T", "value": "t"}], "resources": {"limits": {"memory": "128Mi"}}}]}}
    status, o = k.call("POST", T, {"metadata": {"name": "tpl"}, "spec": {"podTemplate": pod}})
    assert status == 201 and o["spec"]["podTemplate"]["spec"]["containers"][0]["env"] == [{"name": "T"}], o
    assert k.d.ok("GET", "/holt/v1/templates/tpl")["fields"]["memory_bytes"] == 128 << 20
    with k.watch("resourceVersion=0", path=P) as w:
        status, o = k.call("POST", P, {"metadata": {"name": "tpl-pool"}, "spec": {"replicas": 0, "sandboxTemplateRef": {"name": "tpl"}}})
        assert status == 201 and o["spec"]["replicas"] == 0, o
        w.until("ADDED", "tpl-pool")
        assert k.patch(f"{P}/tpl-pool", {"spec": {"replicas": 2}})[1]["spec"]["replicas"] == 2
        assert w.until("MODIFIED", "tpl-pool")["spec"]["replicas"] == 2
    assert k.d.ok("GET", "/holt/v1/templates/tpl-pool")["pool"] == 2
    assert k.call("POST", P, {"metadata": {"name": "x"}, "spec": {"sandboxTemplateRef": {"name": "none"}}})[0] == 422
    assert k.call("POST", P, {"metadata": {"name": "tpl"}, "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "tpl"}}})[1]["spec"]["replicas"] == 1
    k.claim("of-pool", pool="tpl-pool")
    k.ready("of-pool")
    assert k.to("of-pool", "POST", "/execute", {"command": "sh -c 'echo $T'"})[1]["stdout"] == "t\n"
    k.remove("of-pool")
    assert k.call("POST", T, {"metadata": {"name": "bad"}, "spec": {"podTemplate": {"spec": {"containers": []}}}})[0] == 422
    for name in ("tpl", "tpl-pool"):
        assert k.call("DELETE", f"{T}/{name}")[0] == 200 and k.get(name, P) is None


# --- kubectl ---


class Kubectl:
    def __init__(self, k):
        self.k, self.config = k, k.config()

    def __call__(self, *argv, status=0, **more):
        p = subprocess.run(["kubectl", "--kubeconfig", self.config, *argv], capture_output=True, text=True, timeout=60, **more)
        assert p.returncode == status, (argv, p.stdout, p.stderr)
        return p.stdout if status == 0 else p.stderr


@pytest.fixture
def kubectl(k):
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed (Debian: kubectl or kubernetes-client)")
    return Kubectl(k)


def rows(text):
    return [line.split() for line in text.splitlines()]


MANIFEST = """
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {{name: {name}, labels: {{by: kubectl}}}}
spec: {{warmPoolRef: {{name: {pool}}}}}
"""


def test_kubectl_applies_gets_watches_and_deletes(k, kubectl):
    assert kubectl("apply", "-f", "-", input=MANIFEST.format(name="kc", pool=POOL)) == "sandboxclaim.extensions.agents.x-k8s.io/kc created\n"
    kubectl("wait", "--for=condition=Ready", "sandboxclaim/kc", "--timeout=30s")
    assert kubectl("apply", "-f", "-", input=MANIFEST.format(name="kc", pool=POOL)) == "sandboxclaim.extensions.agents.x-k8s.io/kc unchanged\n"
    kubectl("apply", "-f", "-", input=MANIFEST.format(name="kn", pool="none"))
    wait_for(lambda: reason_of(k.get("kn")) == "WarmPoolNotFound")
    head, *lines = rows(kubectl("get", "sandboxclaims"))
    assert head == ["NAME", "READY", "SANDBOX", "REASON", "AGE"]
    assert [line[:-1] for line in lines if line[0] != "routed"] == [["kc", "True", "kc", "DependenciesReady"], ["kn", "False", "WarmPoolNotFound"]]
    head, line = rows(kubectl("get", "sandboxclaims", "-o", "wide", "-l", "by=kubectl", "--field-selector=metadata.name=kc"))
    assert head[-1] == "WARMPOOL" and line[-1] == POOL
    assert json.loads(kubectl("get", "sandboxclaim", "kc", "-o", "json"))["metadata"]["uid"] == k.get("kc")["metadata"]["uid"]
    assert rows(kubectl("get", "sandbox"))[0] == ["NAME", "READY", "REASON", "AGE"] and rows(kubectl("get", "swp"))[0] == ["NAME", "READY", "DESIRED", "AGE"]
    assert rows(kubectl("get", "sandboxtemplates", "-A"))[0] == ["NAMESPACE", "NAME", "AGE"]
    kubectl("label", "sandboxclaim", "kc", "more=yes")
    assert k.get("kc")["metadata"]["labels"] == {"by": "kubectl", "more": "yes"}
    assert "Warm Pool Ref" in kubectl("describe", "sandboxclaim", "kc")
    watching = subprocess.Popen(["kubectl", "--kubeconfig", kubectl.config, "get", "sandboxclaims", "-w"], stdout=subprocess.PIPE, text=True)
    try:
        seen = [watching.stdout.readline().split()[0] for _ in range(len(lines) + 1)]
        assert seen[0] == "NAME" and {"kc", "kn"} < set(seen)
        kubectl("apply", "-f", "-", input=MANIFEST.format(name="kw", pool=POOL))
        assert watching.stdout.readline().split()[0] == "kw"
    finally:
        watching.kill()
        watching.wait()
    kubectl("delete", "sandboxclaim", "kc", "kw")  # waits until they are gone
    assert k.get("kc") is None and k.get("kc", BOXES) is None
    kubectl("delete", "sandboxclaims", "-l", "by=kubectl")
    assert kubectl("get", "sandboxclaim", "kc", status=1) == 'Error from server (NotFound): sandboxclaims.extensions.agents.x-k8s.io "kc" not found\n'
    assert "spec.warmPoolRef.name" in kubectl("create", "-f", "-", status=1, input=MANIFEST.format(name="kc", pool='""'))


def test_kubectl_discovers_the_kinds(kubectl):
    kinds = {line[-1] for line in rows(kubectl("api-resources"))[1:]}
    assert kinds == {"Sandbox", "SandboxClaim", "SandboxTemplate", "SandboxWarmPool"}
    assert "v1.36" in kubectl("version")


def test_kubectl_creates_templates_and_pools(k, kubectl):
    kubectl("apply", "-f", "-", input="""
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: kt}
spec: {podTemplate: {spec: {containers: [{name: a, image: host}]}}}
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: kp}
spec: {replicas: 1, sandboxTemplateRef: {name: kt}}
""")
    assert k.d.ok("GET", "/holt/v1/templates/kp")["pool"] == 1
    kubectl("delete", "swp", "kp")
    kubectl("delete", "sandboxtemplate", "kt")
