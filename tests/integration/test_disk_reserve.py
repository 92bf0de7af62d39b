"""A nearly full disk: what would fill it is refused, records go on, and everything recovers."""
import errno
import http.client
import io
import os
import tarfile
import time

import pytest

from daemon import Holtd, environment, wait_for
from hub_client import form

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small filesystem")
MIB = 1 << 20


class Small(Holtd):
    """Its state directory is a tmpfs of 64 MiB, in a mount namespace of its own; 16 MiB are kept free."""

    def __init__(self, directory, *args, reserve="16m"):
        self.inside = f"{directory}/state"
        os.makedirs(self.inside, exist_ok=True)
        script = 'mount --make-rprivate / && mount -t tmpfs -o size=64m,mode=700 holt "$0" && exec "$@"'
        options = environment()["ASAN_OPTIONS"] + ":detect_leaks=0"
        super().__init__(directory, "--runtime", "native", "--disk-reserve", reserve, *args, env={"ASAN_OPTIONS": options},
                         prefix=["unshare", "-m", "sh", "-c", script, self.inside])

    @property
    def place(self):
        return f"/proc/{self.pid}/root{self.inside}"

    @property
    def token(self):
        with open(f"{self.place}/admin-token", encoding="utf-8") as f:
            return f.read().strip()

    def fill(self, leave):
        """A file of somebody else's takes all but so much."""
        with open(f"{self.place}/filler", "wb", buffering=0) as f:
            os.posix_fallocate(f.fileno(), 0, max(self.free() - max(leave, MIB), 1))
            f.seek(0, os.SEEK_END)
            try:
                while leave == 0:
                    f.write(bytes(4096))
            except OSError as e:
                assert e.errno == errno.ENOSPC

    def empty(self):
        os.unlink(f"{self.place}/filler")

    def free(self):
        at = os.statvfs(self.place)
        return at.f_bavail * at.f_frsize


@pytest.fixture
def small(tmp_path):
    d = Small(tmp_path)
    yield d
    d.clear()
    assert d.stop() == 0


def archive(size):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        info = tarfile.TarInfo("big")
        info.size = size
        t.addfile(info, io.BytesIO(os.urandom(size)))
    return out.getvalue()


def send(d, method, path, body):
    c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=60)
    try:
        c.request(method, path, body, {"Authorization": f"Bearer {d.token}", "Content-Type": "application/x-tar"})
        r = c.getresponse()
        return r.status, r.read().decode()
    finally:
        c.close()


def test_creates_imports_and_uploads_are_refused_in_time(small):
    id = small.ok("POST", "/holt/v1/sandboxes", {"name": "one"})["id"]
    small.fill(8 * MIB)
    wait_for(lambda: small.request("POST", "/holt/v1/sandboxes", {})[0] == 507)  # holtd looks now and then, not each time
    status, refusal, _ = small.request("POST", "/holt/v1/sandboxes", {})
    error = refusal["error"]
    assert (status, error["code"]) == (507, "full")
    assert small.inside in error["message"] and "bytes are free" in error["message"] and "disk_reserve" in error["hint"]
    assert send(small, "POST", "/holt/v1/images/import?name=x", archive(1024))[0] == 507
    status, text = send(small, "PUT", f"/holt/v1/sandboxes/{id}/files?path=/root/f", b"x")
    assert status == 507 and "disk_reserve" in text
    # What is there goes on: commands, changes, reads, ends.
    assert small.ok("POST", f"/holt/v1/sandboxes/{id}/execs", {"command": "echo hi"})["stdout"] == "hi\n"
    assert small.ok("PATCH", f"/holt/v1/sandboxes/{id}", {"name": "two"})["name"] == "two"
    assert small.request("GET", "/readyz")[0] == 200
    small.empty()
    other = wait_for(lambda: small.request("POST", "/holt/v1/sandboxes", {})[1].get("id"))
    assert send(small, "PUT", f"/holt/v1/sandboxes/{other}/files?path=/root/f", b"x")[0] in (200, 201, 204)


def test_a_stream_is_stopped_before_the_disk_is_full(small):
    id = small.ok("POST", "/holt/v1/sandboxes", {})["id"]
    try:
        status, text = send(small, "PUT", f"/holt/v1/sandboxes/{id}/files?path=/root/big", b"x" * (80 * MIB))
        assert status == 507 and "nearly full" in text
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not read the rest
    assert small.free() > 8 * MIB
    small.ok("DELETE", f"/holt/v1/sandboxes/{id}")
    wait_for(lambda: small.free() > 50 * MIB)
    try:
        status, text = send(small, "POST", "/holt/v1/images/import?name=x", archive(80 * MIB))
        assert status == 507, text
    except (BrokenPipeError, ConnectionResetError):
        pass
    wait_for(lambda: small.free() > 50 * MIB)  # and what had come is gone


@pytest.mark.parametrize("reserve", ["16m", "0"])
def test_a_project_s_file_is_whole_or_not_there(tmp_path, reserve):
    """With a reserve it is asked before; without one the filesystem says it, in the middle."""
    d = Small(tmp_path, "--file-bytes", "100m", reserve=reserve)
    try:
        project = d.ok("POST", "/projects", {"name": "p", "creator": "human"})["id"]
        files = f"/projects/{project}/files"
        for size, want in ((1000, 200), (80 * MIB, 507), (2000, 200)):
            body, kind = form([("file", "f", b"x" * size)])
            try:
                status, reply, _ = d.request("POST", files, body, headers={"Content-Type": kind})
                assert status == want and (want == 200 or reply["code"] == "full"), reply
            except OSError:
                assert want == 507  # it did not read the rest
            wait_for(lambda: d.free() > 50 * MIB)
            time.sleep(0.03)  # holtd looks now and then, not each time
            wait_for(lambda: not [n for n in os.listdir(f"{d.place}/blobs") if n.startswith("in_")])
        assert [f["size"] for f in d.ok("GET", f"{files}?name=f")] == [2000, 1000]
        assert len(os.listdir(f"{d.place}/blobs")) == 2
    finally:
        assert d.stop() == 0


def test_output_waits_for_room_and_no_byte_is_lost(small):
    id = small.ok("POST", "/holt/v1/sandboxes", {})["id"]
    small.fill(10 * MIB)
    command = "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done"
    x = small.ok("POST", f"/holt/v1/sandboxes/{id}/execs", {"command": command, "background": True})["id"]
    time.sleep(1.5)
    assert small.ok("GET", f"/holt/v1/sandboxes/{id}/execs/{x}")["state"] == "running", "it waits"
    small.empty()
    wait_for(lambda: small.ok("GET", f"/holt/v1/sandboxes/{id}/execs/{x}")["state"] == "exited", 30)
    got = send(small, "GET", f"/holt/v1/sandboxes/{id}/execs/{x}/output?stream=stdout", None)[1]
    assert got == "".join(f"line {i}\n" for i in range(40000))


def test_a_kill_without_room_is_that_commands_alone(small):
    """Its end is behind output that cannot be written; the others of its sandbox do not pay for that."""
    execs = f"/holt/v1/sandboxes/{small.ok('POST', '/holt/v1/sandboxes', {})['id']}/execs"
    other = small.ok("POST", execs, {"command": "sleep 100", "background": True})["id"]
    small.fill(10 * MIB)
    x = small.ok("POST", execs, {"command": "yes", "background": True})["id"]
    time.sleep(1.5)
    small.ok("POST", f"{execs}/{x}/cancel")
    done = wait_for(lambda: (lambda r: r if r["ended_at"] else None)(small.ok("GET", f"{execs}/{x}")), 30)
    assert done["cancelled"] and (done["state"] == "exited" or "the disk is full" in done["failure"]), done
    assert small.ok("GET", f"{execs}/{other}")["state"] == "running"
    small.empty()
    assert wait_for(lambda: small.ok("POST", execs, {"command": "pgrep -x yes || echo none"})["stdout"] == "none\n")


def test_a_disk_that_is_full_all_the_same(small):
    """Somebody else takes the reserve too: what was acknowledged stays, and it goes on with new room."""
    made = [small.ok("POST", "/holt/v1/sandboxes", {"name": f"box-{i}"})["id"] for i in range(3)]
    small.fill(0)
    renamed = [small.request("PATCH", f"/holt/v1/sandboxes/{id}", {"labels": {"n": "x" * 1000}})[0] for id in made * 4]
    assert small.request("GET", f"/holt/v1/sandboxes/{made[0]}")[0] == 200
    assert small.request("POST", "/holt/v1/sandboxes", {})[0] == 507
    small.empty()
    wait_for(lambda: small.request("POST", "/holt/v1/sandboxes", {"name": "after"})[0] in (201, 409))
    assert small.ok("PATCH", f"/holt/v1/sandboxes/{made[0]}", {"name": "again"})["name"] == "again"
    rows = {b["id"]: b for b in small.ok("GET", "/holt/v1/sandboxes")["sandboxes"]}
    assert set(made) < set(rows) and rows[made[0]]["name"] == "again"
    for id, status in zip(made * 4, renamed):
        assert status != 200 or rows[id]["labels"] == {"n": "x" * 1000}
    assert small.request("GET", "/holt/v1/audit/verify")[0] in (200, 404)
