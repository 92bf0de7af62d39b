"""Tenants and names: whose an object is decides who may touch it, and nobody gets another's object by its name."""
import grpc
import pytest

from agentbox_client import Sandbox
from daemon import native

API = "/holt/v1"


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def holtd(tmp_path_factory, storage):
    d = native(tmp_path_factory.mktemp("tenant"), "--storage-path", str(storage), "--sbx-allowed-hosts", "a.example",
               "--sbx-cache-mode", "hostpath")
    yield d
    d.clear()
    assert d.stop() == 0


class Who:
    """Somebody with a token of its own."""

    def __init__(self, d, name, role="agent", **more):
        body = {"name": name, "role": role, **more}
        if role == "agent":
            body["agent"] = name
        self.d, self.made = d, d.ok("POST", f"{API}/tokens", body)
        self.token, self.owner = self.made["token"], f"token/{self.made['id']}"
        self.boxes = []

    def ask(self, method, path, body=None, **more):
        return self.d.request(method, path, body, token=self.token, **more)[:2]

    def ok(self, method, path, body=None):
        status, reply = self.ask(method, path, body)
        assert 200 <= status < 300, (method, path, status, reply)
        return reply

    def box(self, **spec):
        made = self.ok("POST", f"{API}/sandboxes", spec)
        self.boxes.append(made["id"])
        return made

    def close(self):
        for box in self.boxes:
            self.d.request("DELETE", f"{API}/sandboxes/{box}")
        self.d.ok("DELETE", f"{API}/tokens/{self.made['id']}")


@pytest.fixture
def who(holtd):
    made = []

    def make(name, role="agent", **more):
        made.append(Who(holtd, name, role, **more))
        return made[-1]

    yield make
    for w in made:
        w.close()
    holtd.clear()
    for v in holtd.ok("GET", f"{API}/volumes")["volumes"]:
        holtd.ok("DELETE", f"{API}/volumes/{v['id']}")


def session(d, w, name, tenant):
    """The output of a look into /workspace of a session of this tenant, or the status that refuses it."""
    client = Sandbox(d.port, w.token)
    try:
        client.CreateSession(session_id=name, tenant_id=tenant)
        reply = client.Exec(session_id=name, command="cat /workspace/theirs; echo mine > /workspace/theirs")
        client.DestroySession(session_id=name)
        return reply.stdout
    except grpc.RpcError as e:
        return e.code()
    finally:
        client.close()


def test_an_agent_has_no_others_tenant_storage(holtd, storage, who):
    workspace = storage / "acme" / "workspace"
    op = who("op", "operator")
    session(holtd, op, "first", "acme")
    assert workspace.is_dir()
    (workspace / "theirs").write_text("of acme\n")
    (workspace / "theirs").chmod(0o666)
    agent = who("stranger")
    assert session(holtd, agent, "s-stranger", "acme") == grpc.StatusCode.PERMISSION_DENIED
    for w in (who("of-beta", tenant="beta"), who("op-beta", "operator", tenant="beta")):
        assert session(holtd, w, f"s-{w.made['name']}", "acme") == grpc.StatusCode.PERMISSION_DENIED
    assert session(holtd, agent, "s-new", "never-seen") == grpc.StatusCode.PERMISSION_DENIED
    assert not (storage / "never-seen").exists()
    assert (workspace / "theirs").read_text() == "of acme\n"
    assert "of acme" in session(holtd, who("of-acme", tenant="acme"), "own", "acme")


@pytest.mark.parametrize("what", ["sandboxes", "volumes"])
def test_a_tenant_is_not_chosen_by_an_agent(holtd, who, what):
    agent, bound = who("chooser"), who("bound", tenant="acme")
    assert agent.ask("POST", f"{API}/{what}", {"name": "x", "tenant": "acme"})[0] == 403
    assert bound.ask("POST", f"{API}/{what}", {"name": "x", "tenant": "beta"})[0] == 403
    made = bound.ok("POST", f"{API}/{what}", {"name": "x"})
    assert made["tenant"] == "acme" and made["owner"] == bound.owner
    assert who("op-beta", "operator", tenant="beta").ok("GET", f"{API}/{what}")[what] == []
    assert [x["id"] for x in who("op-acme", "operator", tenant="acme").ok("GET", f"{API}/{what}")[what]] == [made["id"]]


def test_a_planted_volume_is_not_mounted(holtd, who):
    agent, op = who("planter"), who("op", "operator")
    planted = agent.ok("POST", f"{API}/volumes", {"name": "cache"})
    status, reply = op.ask("POST", f"{API}/sandboxes", {"volumes": [{"name": "cache", "path": "/c"}]})
    assert status == 404 and "OWNER/NAME" in reply["error"]["hint"], reply
    own = op.ok("POST", f"{API}/volumes", {"name": "cache"})
    box = op.box(volumes=[{"name": "cache", "path": "/c"}])
    assert [v["id"] for v in box["volumes"]] == [own["id"]]
    box = op.box(volumes=[{"name": f"{agent.made['id']}/cache", "path": "/c"}])  # on purpose
    assert [v["id"] for v in box["volumes"]] == [planted["id"]]
    assert agent.ask("POST", f"{API}/sandboxes", {"volumes": [{"name": f"{op.made['id']}/cache", "path": "/c"}]})[0] == 404
    assert agent.ask("POST", f"{API}/sandboxes", {"volumes": [{"name": own["id"], "path": "/c"}]})[0] == 403


def sh(text):
    return {"command": ["sh", "-c", text], "async": False}


def test_sbx_makes_its_own_cache_and_its_own_sandbox(holtd, who):
    """Neither a volume nor a sandbox that an agent named first is the operator's."""
    agent, op = who("squatter"), who("op", "operator")
    planted = agent.ok("POST", f"{API}/volumes", {"name": "sbx-cache"})
    first = agent.ask("POST", "/sandboxes", {"id": "ci-10"})
    assert first[0] == 200, first
    mine = op.ok("POST", "/sandboxes", {"id": "ci-10"})
    assert mine["id"] == "sbx-ci-10"
    boxes = {b["owner"]: b for b in holtd.ok("GET", f"{API}/sandboxes")["sandboxes"]}
    assert set(boxes) == {agent.owner, op.owner}
    assert planted["id"] not in [v["id"] for v in boxes[op.owner]["volumes"]]
    assert boxes[op.owner]["volumes"], "a cache of its own"
    # Each means its own by the name, and ends its own.
    assert op.ok("POST", "/sandboxes/sbx-ci-10/exec", sh("echo of-op > /tmp/who; cat /tmp/who"))["stdout"] == "of-op\n"
    assert agent.ok("POST", "/sandboxes/sbx-ci-10/exec", sh("cat /tmp/who || echo none"))["stdout"] == "none\n"
    agent.ok("DELETE", "/sandboxes/sbx-ci-10")
    assert [b["owner"] for b in holtd.ok("GET", f"{API}/sandboxes")["sandboxes"]] == [op.owner]


def test_names_are_unique_per_owner(holtd, who):
    agent, op, third = who("a"), who("op", "operator"), who("third", "operator")
    theirs, ours = agent.box(name="web"), op.box(name="web")
    assert op.ask("POST", f"{API}/sandboxes", {"name": "web"})[0] == 409
    assert agent.ok("GET", f"{API}/sandboxes/web")["id"] == theirs["id"]
    assert op.ok("GET", f"{API}/sandboxes/web")["id"] == ours["id"]
    status, reply = third.ask("GET", f"{API}/sandboxes/web")
    assert status == 409 and theirs["id"] in reply["error"]["message"] and ours["id"] in reply["error"]["message"]
    assert "OWNER/NAME" in reply["error"]["hint"]
    for owner, box in ((agent, theirs), (op, ours)):
        assert third.ok("GET", f"{API}/sandboxes/{owner.made['id']}%2Fweb")["id"] == box["id"]
        assert third.ok("GET", f"{API}/sandboxes/token%2F{owner.made['id']}%2Fweb")["id"] == box["id"]
    assert agent.ask("GET", f"{API}/sandboxes/{op.made['id']}%2Fweb")[0] == 404
    assert agent.ask("GET", f"{API}/sandboxes/wob")[1]["error"]["hint"] == "did you mean 'web'? holt ls lists all sandboxes"
    agent.ok("DELETE", f"{API}/sandboxes/web")
    assert third.ok("GET", f"{API}/sandboxes/web")["id"] == ours["id"]
    assert "did you mean" not in agent.ask("GET", f"{API}/sandboxes/wob")[1]["error"]["hint"], "it tells others' names"


def test_sharing_is_for_people(holtd, who):
    agent, op, other = who("a"), who("op", "operator"), who("b", tenant="beta")
    assert agent.ask("POST", f"{API}/volumes", {"name": "x", "shared": True})[0] == 403
    v = op.ok("POST", f"{API}/volumes", {"name": "tools", "shared": True})
    for w in (agent, other):
        assert [m["id"] for m in w.box(volumes=[{"name": "tools", "path": "/t"}])["volumes"]] == [v["id"]]
        assert w.ask("DELETE", f"{API}/volumes/{v['id']}")[0] == 403
        own = w.ok("POST", f"{API}/volumes", {"name": "tools"})  # what is one's own goes first
        assert [m["id"] for m in w.box(volumes=[{"name": "tools", "path": "/t"}])["volumes"]] == [own["id"]]


def test_a_volume_is_shared_later(tmp_path):
    """By a person; those who have it keep it when it is shared no longer; a restart forgets nothing."""
    d = native(tmp_path)
    try:
        agent, op = Who(d, "a"), Who(d, "op", "operator")
        v = op.ok("POST", f"{API}/volumes", {"name": "tools"})
        own = agent.ok("POST", f"{API}/volumes", {"name": "mine"})
        want = {"volumes": [{"name": "tools", "path": "/t"}]}
        assert agent.ask("POST", f"{API}/sandboxes", want)[0] == 404
        assert agent.ask("PATCH", f"{API}/volumes/{v['id']}", {"shared": True})[0] == 403
        status, refusal = agent.ask("PATCH", f"{API}/volumes/mine", {"shared": True})
        assert status == 403 and "holt volume update" in refusal["error"]["hint"], refusal
        assert op.ok("PATCH", f"{API}/volumes/tools", {"shared": True})["shared"] is True
        box = agent.box(**want)
        assert [m["id"] for m in box["volumes"]] == [v["id"]]
        assert agent.ask("DELETE", f"{API}/volumes/{v['id']}")[0] == 403
        assert op.ok("PATCH", f"{API}/volumes/{own['id']}", {"shared": True})["shared"] is True
        d.stop()
        d = native(tmp_path)
        agent.d = op.d = d
        assert agent.ok("GET", f"{API}/volumes/{v['id']}")["shared"] is True
        assert op.ok("PATCH", f"{API}/volumes/tools", {"shared": False})["shared"] is False
        assert agent.ask("POST", f"{API}/sandboxes", want)[0] == 404
        assert [m["id"] for m in agent.ok("GET", f"{API}/sandboxes/{box['id']}")["volumes"]] == [v["id"]]
        assert [e["data"]["shared"] for e in op.ok("GET", f"{API}/events?limit=1000")["events"] if e["object"] == f"volume/{v['id']}"] == [
            False, True, False]
    finally:
        d.clear()
        d.stop()


def test_names_survive_a_restart(tmp_path):
    d = native(tmp_path)
    try:
        agent, op = Who(d, "a"), Who(d, "op", "operator")
        theirs, ours = agent.box(name="web"), op.box(name="web")
        d.stop()
        d = native(tmp_path)
        agent.d = op.d = d
        assert agent.ok("GET", f"{API}/sandboxes/web")["id"] == theirs["id"]
        assert op.ok("GET", f"{API}/sandboxes/web")["id"] == ours["id"]
    finally:
        d.clear()
        d.stop()


def test_a_session_owns_as_its_token(holtd, who):
    op = who("op", "operator")
    code = op.ok("POST", f"{API}/login/code", {})["code"]
    _, _, headers = holtd.request("POST", f"{API}/login", {"code": code}, token=None)
    cookie = {"Cookie": headers["set-cookie"].split(";")[0]}
    box = holtd.ok("POST", f"{API}/sandboxes", {"name": "web"}, token=None, headers=cookie)
    assert box["owner"] == op.owner
    assert op.ask("POST", f"{API}/sandboxes", {"name": "web"})[0] == 409
    holtd.ok("DELETE", f"{API}/sandboxes/{box['id']}")


def test_an_observer_reads_no_content_unless_its_token_says_so(holtd, who):
    op = who("op", "operator")
    box = f"{API}/sandboxes/{op.box(name='web')['id']}"
    done = op.ok("POST", f"{box}/execs", {"command": ["echo", "hi"]})
    reads = [f"{box}/files?path=/etc/passwd", f"{box}/files/list?path=/", f"{box}/archive?path=/etc/passwd",
             f"{box}/logs", f"{box}/execs/{done['id']}/output"]
    looker, reader = who("looker", "observer"), who("reader", "observer", content=True)
    for path in (box, f"{box}/execs", f"{box}/execs/{done['id']}", f"{box}/stats"):
        assert looker.ask("GET", path)[0] == 200
    for path in reads:
        assert looker.ask("GET", path)[0] == 403, path
        assert reader.ask("GET", path)[0] == 200, path
    assert reader.ask("PUT", f"{box}/files?path=/tmp/x", {})[0] == 403
    for bad in ({"role": "operator", "content": True}, {"role": "admin", "tenant": "acme"}):
        assert holtd.request("POST", f"{API}/tokens", {"name": "x", **bad})[0] == 400
