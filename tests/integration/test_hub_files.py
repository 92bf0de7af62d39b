"""Files of projects: the hub's multipart upload and download, the native form, what is on disk, and what a crash leaves."""
import hashlib
import json
import os
import shutil
import socket
import subprocess
import threading

import pytest

from daemon import all_events, wait_for
from hub_client import AgentClient, HubError, call, download, form, upload


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    from daemon import Holtd
    d = Holtd(tmp_path_factory.mktemp("files"), "--auth", "off", "--file-versions", "3", "--project-bytes", "24m")
    yield d
    assert d.stop() == 0


def sha(data):
    return hashlib.sha256(data).hexdigest()


def project(hub, name="p"):
    status, reply, _ = call(hub.url, "POST", "/projects", {"name": name, "creator": "human"})
    assert status == 201
    return reply["id"]


def blobs(hub):
    return sorted(os.listdir(f"{hub.state}/blobs"))


# --- there and back ---


@pytest.mark.parametrize("data", [b"", b"x", b"hello\n", bytes(range(256)) * 1000, b"\r\n--b0undar" * 20000],
                         ids=["empty", "byte", "line", "binary", "near"])
def test_what_comes_out_is_what_went_in(hub, data):
    p = project(hub)
    c = AgentClient(hub.url, "filer", "x")
    c.register()
    assert c.upload_file(p, "dir/a-b_c.txt", data) == {"checksum": sha(data), "filename": "dir/a-b_c.txt",
                                                       "size": len(data), "version": 1}
    assert c.download_file(p, "dir/a-b_c.txt") == data
    listed = call(hub.url, "GET", f"/projects/{p}")[1]["files"]["dir/a-b_c.txt"]
    assert listed["checksum"] == sha(data) and listed["size"] == len(data) and listed["updated_at"]


def test_largest_file_and_one_byte_more(hub):
    p = project(hub)
    data = os.urandom(10485760)
    assert upload(hub.url, p, "big", data)[0] == 200
    assert download(hub.url, p, "big")[1] == data
    status, reply, _ = upload(hub.url, p, "big", data + b"x")
    assert status == 400 and reply["error"] == "File too large (max 10485760 bytes)"
    wait_for(lambda: not [n for n in blobs(hub) if n.startswith("in_")])
    assert download(hub.url, p, "big")[1] == data


def test_versions(hub):
    p = project(hub)
    for i in range(1, 6):
        assert upload(hub.url, p, "f", b"v%d" % i)[1]["version"] == i
    assert download(hub.url, p, "f")[1] == b"v5"
    assert download(hub.url, p, "f", version=3)[1] == b"v3"
    assert download(hub.url, p, "f", version=2)[0] == 404  # three are kept
    assert download(hub.url, p, "f", version=0)[0] == 400 and download(hub.url, p, "f", version="x")[0] == 400
    assert [f["version"] for f in call(hub.url, "GET", f"/projects/{p}/files", query={"name": "f"})[1]] == [5, 4, 3]
    assert [f["filename"] for f in call(hub.url, "GET", f"/projects/{p}/files")[1]] == ["f"]
    wait_for(lambda: sha(b"v1") not in blobs(hub) and sha(b"v2") not in blobs(hub))
    assert sha(b"v3") in blobs(hub)
    # the same content again and again: the version that goes has what the one that comes has
    for _ in range(5):
        upload(hub.url, p, "same", b"the same")
    assert download(hub.url, p, "same")[1] == b"the same"


def test_headers_ranges_and_etag(hub):
    p = project(hub)
    upload(hub.url, p, "a/page.html", b"<script>alert(1)</script>")
    status, data, h = download(hub.url, p, "a/page.html")
    assert status == 200 and h["Content-Type"] == "application/octet-stream" and h["X-Content-Type-Options"] == "nosniff"
    assert h["Content-Disposition"] == 'attachment; filename="page.html"'
    assert h["X-Checksum-Sha256"] == sha(data) and h["ETag"] == f'"{sha(data)}"' and h["X-Holt-Version"] == "1"
    assert download(hub.url, p, "a/page.html", headers={"Range": "bytes=1-6"})[:2] == (206, b"script")
    assert download(hub.url, p, "a/page.html", headers={"If-None-Match": h["ETag"]})[0] == 304
    assert download(hub.url, p, "a%2Fpage.html".replace("%2F", "/"))[0] == 200


def test_same_content_is_stored_once_and_goes_with_the_last(hub):
    p, q = project(hub), project(hub)
    upload(hub.url, p, "one", b"shared bytes")
    upload(hub.url, q, "two", b"shared bytes")
    assert blobs(hub).count(sha(b"shared bytes")) == 1
    assert call(hub.url, "DELETE", f"/projects/{p}")[0] == 200
    assert download(hub.url, q, "two")[1] == b"shared bytes"
    assert call(hub.url, "DELETE", f"/projects/{q}")[0] == 200
    wait_for(lambda: sha(b"shared bytes") not in blobs(hub))
    status, data, _ = download(hub.url, q, "two")
    assert status == 404 and json.loads(data)["error"] == "Project not found"


# --- refusals ---


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "..", "./a", "a/.", "a\\b", "a b", "", "x" * 256,
                                  "ä", "a:b", "a..b"])
def test_names_that_lead_elsewhere(hub, name):
    p = project(hub)
    status, reply, _ = upload(hub.url, p, name.replace("\\", "\\\\"), b"x")
    assert status == 400 and reply["error"] == "Invalid filename", name
    assert call(hub.url, "GET", f"/projects/{p}")[1]["files"] == {}


def test_forms_without_a_file(hub):
    p = project(hub)
    path = f"/projects/{p}/files"

    def post(parts, **more):
        body, kind = form(parts)
        return call(hub.url, "POST", path, raw=body, headers={"Content-Type": kind, **more})[:2]

    for parts in ([], [("uploader", None, b"a")], [("file", None, b"text")], [("other", "f", b"x")]):
        status, reply = post(parts)
        assert status == 400 and reply["error"] == "file required", parts
    assert call(hub.url, "POST", path, {"file": 1})[1]["error"] == "file required"
    assert post([("file", "a", b"1"), ("file", "b", b"2")])[1]["error"] == "one file at a time"
    assert post([("uploader", None, b"x" * 2000), ("file", "a", b"1")])[0] == 400
    assert post([("uploader", None, b"\xff"), ("file", "a", b"1")])[0] == 400
    body, kind = form([("file", "a", b"1")])
    status, reply, _ = call(hub.url, "POST", path, raw=body[:-6], headers={"Content-Type": kind})
    assert status == 400 and "boundary" in reply["error"]
    assert call(hub.url, "GET", f"/projects/{p}")[1]["files"] == {}
    wait_for(lambda: not [n for n in blobs(hub) if n.startswith("in_")])


def test_missing_things(hub):
    p = project(hub)
    status, reply, _ = upload(hub.url, "pj_none", "a", b"x")
    assert status == 400 and reply["error"] == "Project not found"
    status, data, _ = download(hub.url, p, "none")
    assert status == 404 and json.loads(data)["error"] == "File not found"
    status, data, _ = download(hub.url, "pj_none", "none")
    assert status == 404 and json.loads(data)["error"] == "Project not found"


def test_what_no_row_names_goes(hub):
    upload(hub.url, "pj_none", "a", b"nobody wants this")
    wait_for(lambda: sha(b"nobody wants this") not in blobs(hub))


def test_damage_is_seen_and_an_upload_mends_it(hub):
    p = project(hub)
    upload(hub.url, p, "a", b"precious")
    with open(f"{hub.state}/blobs/{sha(b'precious')}", "wb") as f:
        f.write(b"previous")
    status, data, _ = download(hub.url, p, "a")
    assert status == 404 and json.loads(data)["error"] == "Checksum mismatch"
    upload(hub.url, p, "a", b"precious")
    assert download(hub.url, p, "a")[1] == b"precious"


def test_a_project_has_a_limit(hub):
    p = project(hub)
    for i in range(2):
        assert upload(hub.url, p, f"f{i}", b"%d" % i * 10000000)[0] == 200
    status, reply, _ = upload(hub.url, p, "f2", b"2" * 10000000)
    assert status == 507 and "project_bytes" in reply["hint"]
    assert upload(hub.url, p, "f2", b"2" * 1000)[0] == 200
    wait_for(lambda: sha(b"2" * 10000000) not in blobs(hub))


# --- who ---


def test_agents_upload_as_themselves(new_holtd):
    d = new_holtd()
    person = AgentClient(d.url, "human", token=d.token)
    a = AgentClient(d.url, "ann", token=person.must("POST", "/agents/register", {"name": "ann"})["token"])
    b = AgentClient(d.url, "bob", token=person.must("POST", "/agents/register", {"name": "bob"})["token"])
    p = a.create_project("p")["id"]
    a.upload_file(p, "a", b"1")
    with pytest.raises(HubError) as e:
        AgentClient(d.url, "ann", token=b.token).upload_file(p, "a", b"2")
    assert e.value.status == 403
    status, reply = upload(d.url, p, "a", b"3", b.token)[:2]
    assert status == 403 and "not a member" in str(reply)  # who is outside the project does not overwrite its files
    assert b.join_project(p)
    assert upload(d.url, p, "a", b"3", b.token)[0] == 200  # named nobody: it is bob
    assert [f["uploader"] for f in b.must("GET", f"/projects/{p}/files", name="a")] == ["bob", "ann"]
    assert upload(d.url, p, "a", b"4")[0] == 401 and download(d.url, p, "a")[0] == 401
    person.must("POST", "/agents/bob/revoke", {"reason": "r"})
    with pytest.raises(HubError) as e:
        b.upload_file(p, "a", b"5")
    assert e.value.status == 403 and "revoked" in e.value.body["error"]
    assert b.download_file(p, "a") == b"3"

    def logged(**want):
        """Nobody's answer waits for these rows, so they may come a moment later."""
        return wait_for(lambda: [x for x in person.must("GET", "/audit/log", limit=1000) if want.items() <= x.items()])
    assert any(x["details"]["filename"] == "a" for x in logged(action="upload_file", agent="bob"))
    read = logged(object="operation/hub.file.download", action="request.read")[-1]
    assert read["details"]["path"] == f"/projects/{p}/files/a" and read["actor"].startswith("token/")
    assert logged(object="operation/hub.file.upload", action="request.refused")


def test_events(hub):
    p = project(hub)
    upload(hub.url, p, "seen", b"12345", uploader="me")
    ev = [e for e in all_events(hub, type="project.file") if e["data"]["name"] == "seen"][-1]
    assert ev["object"] == f"project/{p}" and ev["data"]["version"] == 1 and ev["data"]["checksum"] == sha(b"12345")
    assert ev["data"]["uploader"] == "me" and ev["data"]["size"] == 5


# --- robustness ---


def test_an_asker_that_goes_leaves_nothing(hub):
    p = project(hub)
    body, kind = form([("file", "gone", b"y" * 300000)])
    before = [n for n in blobs(hub) if n.startswith("in_")]
    assert before == []
    for cut in (200, 100000, len(body) - 3):
        with socket.create_connection(("127.0.0.1", hub.port)) as s:
            s.sendall(f"POST /projects/{p}/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:cut])
            wait_for(lambda: [n for n in blobs(hub) if n.startswith("in_")])
        wait_for(lambda: not [n for n in blobs(hub) if n.startswith("in_")])
    assert call(hub.url, "GET", f"/projects/{p}")[1]["files"] == {}
    hub.assert_alive()


def test_many_at_once(hub):
    p = project(hub)
    replies = []

    def work(i):
        replies.append(upload(hub.url, p, f"f{i % 4}", b"content %d" % (i % 8) * 1000))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r[0] for r in replies] == [200] * 32
    for n in range(4):
        versions = sorted(r[1]["version"] for r in replies if r[1]["filename"] == f"f{n}")
        assert versions == list(range(1, 9))
        last = next(r[1] for r in replies if r[1]["filename"] == f"f{n}" and r[1]["version"] == 8)
        assert sha(download(hub.url, p, f"f{n}")[1]) == last["checksum"]


def test_curl_uploads(hub, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    p = project(hub)
    f = tmp_path / "notes.txt"
    f.write_bytes(b"from curl" * 100000)
    out = subprocess.run(["curl", "-sS", "-F", f"file=@{f}", "-F", "uploader=claude", f"{hub.url}/projects/{p}/files"],
                         capture_output=True, check=True, timeout=60)
    assert json.loads(out.stdout)["filename"] == "notes.txt"
    out = subprocess.run(["curl", "-sS", f"{hub.url}/projects/{p}/files/notes.txt"], capture_output=True, check=True, timeout=60)
    assert out.stdout == f.read_bytes()


def test_killed_daemon(new_holtd):
    """Acknowledged files are there after kill -9; what was half there is not, nor what no row names."""
    d = new_holtd("--auth", "off", port=0)
    p = project(d)
    kept = {f"f{i}": os.urandom(2000) for i in range(5)}
    for name, data in kept.items():
        assert upload(d.url, p, name, data)[0] == 200
    with socket.create_connection(("127.0.0.1", d.port)) as s:
        body, kind = form([("file", "half", b"z" * 300000)])
        s.sendall(f"POST /projects/{p}/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:200000])
        wait_for(lambda: [n for n in blobs(d) if n.startswith("in_")])
        d.process.kill()
        d.process.wait()
    stray = sha(b"stray")
    with open(f"{d.state}/blobs/{stray}", "wb") as f:
        f.write(b"stray")
    d2 = new_holtd("--auth", "off", name=os.path.basename(d.directory))
    assert d2.state == d.state
    for name, data in kept.items():
        assert download(d2.url, p, name)[1] == data
    assert set(blobs(d2)) == {sha(x) for x in kept.values()}
