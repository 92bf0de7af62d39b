"""Quotas: what an owner, a tenant and all together may have; refused with what is used and what was asked."""
import contextlib

import pytest

from daemon import native, wait_for

API = "/holt/v1"
MIB = 1 << 20
SETTINGS = """
owner_running: 3
owner_cpu: 2000
owner_memory: 512m
owner_disk: 1g
owner_tasks: 1
tenant_sandboxes: 2
tenant_memory: 256m
tenant_tasks: 1
total_running: 5
total_memory: 1g
"""
LIMITS = {"memory_bytes": 64 * MIB, "cpu_millis": 500, "disk_bytes": 100 * MIB}


@pytest.fixture(scope="module")
def holtd(tmp_path_factory):
    d = native(tmp_path_factory.mktemp("quota"), config=SETTINGS)
    yield d
    d.clear()
    assert d.stop() == 0


@pytest.fixture
def who(holtd):
    """Makes a caller: a function (method, path, body) -> (status, reply)."""
    made = []

    def new(name, **more):
        token = holtd.ok("POST", f"{API}/tokens", {"name": name, "role": "operator", **more})
        made.append(token["id"])

        def ask(method, path, body=None):
            return holtd.request(method, f"{API}{path}", body, token=token["token"])[:2]
        ask.owner = f"token/{token['id']}"
        return ask
    yield new
    holtd.clear()
    for t in made:
        holtd.ok("DELETE", f"{API}/tokens/{t}")


def make(ask, **more):
    status, reply = ask("POST", "/sandboxes", {**LIMITS, **more})
    assert status == 201, reply
    return reply["id"]


def refused(answer, setting, *numbers):
    status, reply = answer
    e = reply["error"]
    assert status == 429 and e["code"] == "limit" and f"'{setting}'" in e["hint"], answer
    for n in numbers:
        assert str(n) in e["message"], (n, e)


def used(ask, scope, resource):
    status, reply = ask("GET", "/quotas")
    assert status == 200
    row, = [q for q in reply["quotas"] if (q["scope"], q["resource"]) == (scope, resource)]
    return row["used"], row["limit"], row["setting"]


def test_so_much_of_one_owner(who):
    a, b = who("a"), who("b")
    make(a, memory_bytes=400 * MIB)
    refused(a("POST", "/sandboxes", {**LIMITS, "memory_bytes": 200 * MIB}), "owner_memory", 400 * MIB, 512 * MIB, 200 * MIB)
    refused(a("POST", "/run", {**LIMITS, "memory_bytes": 200 * MIB, "command": ["true"]}), "owner_memory", 400 * MIB)
    refused(a("POST", "/sandboxes", {**LIMITS, "cpu_millis": 1501}), "owner_cpu", 500, 2000, 1501)
    refused(a("POST", "/sandboxes", {**LIMITS, "disk_bytes": 1000 * MIB}), "owner_disk", 100 * MIB, 1024 * MIB, 1000 * MIB)
    make(a)
    assert used(a, "owner", "memory") == (464 * MIB, 512 * MIB, "owner_memory")
    assert used(a, "owner", "running") == (2, 3, "owner_running")
    make(b, memory_bytes=500 * MIB)  # what one has, another is not refused for


def test_what_is_off_uses_no_memory_but_its_disk(who):
    a = who("a")
    box = make(a, memory_bytes=400 * MIB, disk_bytes=600 * MIB)
    assert a("POST", f"/sandboxes/{box}/stop", {})[0] == 200
    assert used(a, "owner", "memory")[0] == 0 and used(a, "owner", "disk")[0] == 600 * MIB
    other = make(a, memory_bytes=300 * MIB)
    refused(a("POST", f"/sandboxes/{box}/start"), "owner_memory", 300 * MIB, 400 * MIB)
    refused(a("POST", "/sandboxes", {**LIMITS, "disk_bytes": 600 * MIB}), "owner_disk", 700 * MIB)
    assert a("DELETE", f"/sandboxes/{other}")[0] < 300
    assert a("POST", f"/sandboxes/{box}/start")[0] == 200


def test_so_many_at_a_time(who):
    a = who("a")
    boxes = [make(a) for _ in range(3)]
    refused(a("POST", "/sandboxes", LIMITS), "owner_running", 3)
    assert a("POST", f"/sandboxes/{boxes[0]}/stop", {})[0] == 200
    make(a)
    refused(a("POST", f"/sandboxes/{boxes[0]}/start"), "owner_running", 3)


def test_what_cannot_be_counted_is_refused(who):
    a = who("a")
    for field in LIMITS:
        status, reply = a("POST", "/sandboxes", {k: v for k, v in LIMITS.items() if k != field})
        assert status == 400 and f"'{field}'" in reply["error"]["message"], reply


def test_a_tenant_shares_one(who, holtd):
    a, b = who("a", tenant="t"), who("b", tenant="t")
    make(a, memory_bytes=200 * MIB)
    refused(b("POST", "/sandboxes", {**LIMITS, "memory_bytes": 100 * MIB}), "tenant_memory", "tenant t", 200 * MIB, 256 * MIB)
    box = make(b, memory_bytes=32 * MIB)
    refused(a("POST", "/sandboxes", {**LIMITS, "memory_bytes": 16 * MIB}), "tenant_sandboxes", 2)
    assert used(a, "tenant", "sandboxes") == (2, 2, "tenant_sandboxes")
    assert {q["scope"] for q in a("GET", "/quotas")[1]["quotas"]} == {"owner", "tenant"}
    assert b("DELETE", f"/sandboxes/{box}")[0] < 300


def test_all_together(who):
    askers = [who(n) for n in ("a", "b", "c")]
    for ask in askers[:2]:
        make(ask, memory_bytes=450 * MIB)
    refused(askers[2]("POST", "/sandboxes", {**LIMITS, "memory_bytes": 200 * MIB}), "total_memory", 900 * MIB, 1024 * MIB, 200 * MIB)
    for ask in askers:
        make(ask, memory_bytes=32 * MIB)
    refused(askers[2]("POST", "/sandboxes", {**LIMITS, "memory_bytes": 16 * MIB}), "total_running", 5)


def test_it_holds_over_a_restart(tmp_path):
    d = native(tmp_path, config=SETTINGS)
    try:
        d.ok("POST", f"{API}/sandboxes", {**LIMITS, "memory_bytes": 400 * MIB})
        d.kill()
        d = native(tmp_path, config=SETTINGS)
        status, reply, _ = d.request("POST", f"{API}/sandboxes", {**LIMITS, "memory_bytes": 200 * MIB})
        assert status == 429 and str(400 * MIB) in reply["error"]["message"], reply
        with open(f"{d.directory}/holt.yaml", "w", encoding="ascii") as f:
            f.write(SETTINGS.replace("owner_memory: 512m", "owner_memory: 1g"))
        d.process.send_signal(1)
        wait_for(lambda: "settings were read again" in d.log())
        d.ok("POST", f"{API}/sandboxes", {**LIMITS, "memory_bytes": 200 * MIB})
    finally:
        with contextlib.suppress(Exception):
            d.clear()
        d.stop()


def test_tasks(who):
    manifest = {"version": "1", "kind": "Task", "metadata": {"name": "n"}, "repository": {"url": "http://127.0.0.1:1/r.git", "branch": "main"},
                "claude": {"prompt": "p"}}
    a, b, c = who("a"), who("b", tenant="t"), who("c", tenant="t")
    status, first = a("POST", "/task-runs", {"manifest": manifest})
    assert status < 300, first
    refused(a("POST", "/task-runs", {"manifest": manifest}), "owner_tasks", 1)
    assert used(a, "owner", "tasks")[0] == 1
    assert b("POST", "/task-runs", {"manifest": manifest})[0] < 300
    refused(c("POST", "/task-runs", {"manifest": manifest}), "tenant_tasks", 1)
    wait_for(lambda: a("GET", f"/task-runs/{first['id']}")[1]["state"].startswith("failed"))
    assert a("POST", "/task-runs", {"manifest": manifest})[0] < 300
