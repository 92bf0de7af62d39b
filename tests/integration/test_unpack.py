"""holt-unpack against archives that want out, in, or too much.  It runs here without its sandbox: every
refusal is its own."""
import hashlib
import os
import stat
import subprocess
import tarfile

import pytest

from archives import END, folder, gz, hardlink, member, raw_header, symlink, tar
from daemon import BUILD, environment

PROGRAM = f"{BUILD}/unpack-checked"
ROOT = os.geteuid() == 0


def unpack(archive, to, mode="layer", *options):
    """(fields, exit status)"""
    p = subprocess.run([PROGRAM, *options, mode, str(to)], input=archive, capture_output=True,
                       env=environment(), timeout=60)
    assert p.returncode in (0, 1), p.stderr.decode()
    assert p.stderr == b"", p.stderr.decode()
    fields = dict(line.split("=", 1) for line in p.stdout.decode().splitlines())
    assert ("error" in fields) == (p.returncode == 1)
    return fields


@pytest.fixture
def box(tmp_path):
    """A directory to unpack into, with things around it that must stay as they are."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    os.chmod(tmp_path / "outside/secret", 0o600)
    inside = tmp_path / "layer"
    inside.mkdir()
    before = listing(tmp_path / "outside")
    yield inside
    assert listing(tmp_path / "outside") == before
    assert sorted(os.listdir(tmp_path)) == ["layer", "outside"]


def listing(top):
    return sorted((p, os.lstat(p).st_mode, os.lstat(p).st_nlink, os.lstat(p).st_size)
                  for d, ds, fs in os.walk(top) for p in [os.path.join(d, n) for n in ds + fs])


def pax_record(key, value):
    body = b" " + key + b"=" + value + b"\n"
    n = len(body) + 1
    while len(str(n)) + len(body) != n:
        n += 1
    return str(n).encode() + body


def extended(kind, data):
    return raw_header(b"x", len(data), kind) + data + b"\0" * (-len(data) % 512)


DEEP = "/".join(["d"] * 200)
HOSTILE = {
    "dotdot": (tar(member("../evil", b"x")), "'..'"),
    "dotdot inside": (tar(folder("a"), member("a/../../evil", b"x")), "'..'"),
    "dotdot that stays": (tar(folder("a"), member("a/../b", b"x")), "'..'"),
    "dotdot directory": (tar(folder("..")), "'..'"),
    "absolute": (tar(member("/tmp/holt-evil", b"x")), "absolute"),
    "absolute by pax": (extended(b"x", pax_record(b"path", b"/tmp/holt-evil")) + raw_header(b"ok") + END, "absolute"),
    "dotdot by GNU name": (extended(b"L", b"../evil\0") + raw_header(b"ok") + END, "'..'"),
    "dotdot by prefix": (tar(member("../" + "p" * 120 + "/" + "n" * 90, b"x"), fmt=tarfile.USTAR_FORMAT), "'..'"),
    "symlink up, then through": (tar(symlink("a", ".."), member("a/evil", b"x")), "link"),
    "symlink to outside": (tar(symlink("a", "../outside"), member("a/evil", b"x")), "link"),
    "symlink absolute": (tar(symlink("a", "/tmp"), member("a/holt-evil", b"x")), "link"),
    "symlink chain": (tar(folder("d"), symlink("d/up", ".."), symlink("e", "d/up/.."), member("e/evil", b"x")), "link"),
    "symlink loop": (tar(symlink("a", "b"), symlink("b", "a"), member("a/x", b"x")), "link"),
    "symlink magic": (tar(symlink("a", "/proc/self/cwd"), member("a/holt-evil", b"x")), "link"),
    "directory over symlink, through": (tar(symlink("a", "../outside"), member("a/secret", b"x")), "link"),
    "whiteout through symlink": (tar(symlink("a", "../outside"), member("a/.wh.secret")), "link"),
    "opaque through symlink": (tar(symlink("a", "../outside"), member("a/.wh..wh..opq")), "link"),
    "hardlink up": (tar(hardlink("a", "../outside/secret")), "'..'"),
    "hardlink absolute": (tar(hardlink("a", "/etc/passwd")), "absolute"),
    "hardlink through symlink": (tar(symlink("s", "../outside"), hardlink("a", "s/secret")), "link"),
    "hardlink to a directory": (tar(folder("d"), hardlink("a", "d")), "not a file"),
    "hardlink to nothing": (tar(hardlink("a", "b")), "not a file"),
    "hardlink to the root": (tar(hardlink("a", ".")), "root"),
    "hardlink to a whiteout": (tar(member(".wh.w"), hardlink("a", "w")), "not a file"),
    "hardlink with content": (raw_header(b"f") + raw_header(b"a", 5, b"1", link=b"f") + b"hello" + b"\0" * 507 + END, "size"),
    "character device": (tar(member("etc/mem", kind=tarfile.CHRTYPE)), "device"),
    "block device": (tar(member("sda", kind=tarfile.BLKTYPE)), "device"),
    "device 0/0, a forged whiteout": (tar(member("etc", kind=tarfile.CHRTYPE)), "device"),
    "device named dev": (tar(member("dev", kind=tarfile.CHRTYPE)), "device"),
    "whiteout of dotdot": (tar(folder("a"), member("a/.wh...")), "whiteout"),
    "whiteout of dot": (tar(folder("a"), member("a/.wh..")), "whiteout"),
    "whiteout of nothing": (tar(member(".wh.")), "whiteout"),
    "whiteout with content": (tar(member(".wh.a", b"x")), "whiteout"),
    "whiteout that is a link": (tar(symlink(".wh.a", "b")), "whiteout"),
    "below a whiteout": (tar(member(".wh.a/b", b"x")), "whiteout"),
    "root is a file": (tar(member(".", b"x")), "root"),
    "root is a link": (tar(symlink("./", "../outside")), "root"),
    "too deep": (tar(member(DEEP, b"x")), "deeper"),
    "long component": (tar(member("n" * 256, b"x")), "longer"),
    "long path": (tar(member("/".join(["n" * 200] * 40), b"x")), "pax|long"),
    "empty name": (raw_header(b"") + END, "empty"),
    "NUL in a pax name": (extended(b"x", pax_record(b"path", b"a\0b")) + raw_header(b"ok") + END, "pax"),
    "file below a file": (tar(member("a", b"x"), member("a/b", b"x")), "directory"),
    "file over a full directory": (tar(folder("a"), member("a/b", b"x"), member("a", b"x")), "directory"),
    "link over a full directory": (tar(folder("a"), member("a/b", b"x"), symlink("a", "../outside")), "directory"),
    "sparse, old GNU": (raw_header(b"s", 0, b"S", magic=b"ustar  \0") + END, "sparse"),
    "sparse, pax": (extended(b"x", pax_record(b"GNU.sparse.major", b"1")) + raw_header(b"s") + END, "sparse"),
    "multi-volume": (raw_header(b"m", 0, b"M") + END, "unknown type"),
    "wrong checksum": (raw_header(b"a")[:148] + b"000000\0 " + raw_header(b"a")[156:] + END, "checksum"),
    "negative size": (raw_header(b"a", size_field=b"\xff" * 12) + END, "number"),
    "huge size": (raw_header(b"a", size_field=b"\x80\0\0\0\xff" + b"\xff" * 7) + END, "number|early|size"),
    "size is no number": (raw_header(b"a", size_field=b"12x45678901\0") + END, "number"),
    "truncated content": (raw_header(b"a", 5000) + b"x" * 512, "early"),
    "truncated header": (raw_header(b"a")[:300], "early"),
    "truncated pax": (raw_header(b"x", 5000, b"x") + b"10 a=b\n", "early"),
    "pax without an entry": (extended(b"x", pax_record(b"path", b"a")) + END, "extended"),
    "pax too long": (raw_header(b"x", 2 << 20, b"x") + b"\0" * (2 << 20) + END, "extended"),
    "pax length lies": (extended(b"x", b"99 path=a\n") + raw_header(b"ok") + END, "pax"),
    "pax length zero": (extended(b"x", b"0 path=a\n") + raw_header(b"ok") + END, "pax"),
    "pax length overflow": (extended(b"x", b"99999999999999999999 p=a\n") + raw_header(b"ok") + END, "pax"),
    "pax without end": (extended(b"x", b"8 a=bbbb") + raw_header(b"ok") + END, "pax"),
    "pax headers without number": (extended(b"x", pax_record(b"a", b"b")) * 20 + raw_header(b"ok") + END, "many"),
    "global pax path": (extended(b"g", pax_record(b"path", b"../evil")) + raw_header(b"ok") + END, "global"),
    "global pax size": (extended(b"g", pax_record(b"size", b"7")) + raw_header(b"ok") + END, "global"),
    "many xattrs": (extended(b"x", b"".join(pax_record(b"SCHILY.xattr.user.a%d" % i, b"1") for i in range(70)))
                    + raw_header(b"ok") + END, "pax"),
    "not a tar": (b"hello world, this is no archive" * 40, "checksum"),
    "empty": (b"", "empty"),
    "bzip2": (b"BZh91AY&SY" + b"x" * 600, "bzip2"),
    "xz": (b"\xfd7zXZ\0" + b"x" * 600, "xz"),
    "gzip cut": (gz(tar(member("a", os.urandom(4000))))[:-20], "early"),
    "gzip damaged": (gz(tar(member("a", b"x" * 4000)))[:-8] + b"\0" * 8, "damaged"),
    "gzip with a tail": (gz(tar(member("a", b"x"))) + b"tail", "unknown bytes"),
    "zstd damaged": (b"\x28\xb5\x2f\xfd" + b"\xff" * 64, "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(name, box):
    archive, why = HOSTILE[name]
    fields = unpack(archive, box)
    assert "error" in fields, "it was taken"
    assert any(w in fields["error"] for w in why.split("|")), fields["error"]
    assert fields["error"].startswith(("invalid ", "too_large ")), fields["error"]


# --- too much ---

def test_a_gzip_bomb_is_stopped_by_its_ratio(box):
    zeros = raw_header(b"z", 200 << 20) + b"\0" * (200 << 20) + END
    fields = unpack(gz(zeros, 9), box)
    assert "grows more than" in fields["error"] and fields["error"].startswith("too_large ")
    assert os.path.getsize(box / "z") < 80 << 20


def test_a_bomb_is_stopped_by_its_size(box):
    fields = unpack(tar(member("a", b"x" * 100000)), box, "layer", "--max-bytes=50000")
    assert "more than 50000 bytes" in fields["error"]


def test_a_flood_of_files_is_stopped(box):
    fields = unpack(tar(*[member(f"f{i}") for i in range(20)]), box, "layer", "--max-files=10")
    assert "more than 10 entries" in fields["error"]
    assert len(os.listdir(box)) == 10


def test_a_gzip_bomb_of_members_is_stopped(box):
    one = gz(b"\0" * (1 << 20), 9)
    fields = unpack(gz(raw_header(b"z", 300 << 20)) + one * 300, box)
    assert "grows more than" in fields["error"]


def test_it_does_not_wait_for_ever(box):
    p = subprocess.Popen([PROGRAM, "--max-seconds=1", "layer", str(box)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env=environment())
    assert p.stdout.read().decode().startswith("error=timeout ")
    assert p.wait(60) == 1
    p.stdin.close()


def test_a_message_is_one_line(box):
    fields = unpack(tar(member("../a\nerror=none \x1b[2J", b"x")), box)
    assert "\x1b" not in fields["error"] and "'..'" in fields["error"]


# --- what is sound arrives ---

@pytest.mark.needs_root("gives files to other users")
def test_a_sound_tree_arrives(box):
    archive = tar(
        folder("./", mode=0o755), folder("usr"), folder("usr/bin", mode=0o755, mtime=1600000000),
        member("usr/bin/tool", b"#!/bin/sh\n" * 100, mode=0o755, mtime=1500000000),
        symlink("bin", "usr/bin"), symlink("etc-alt", "/etc/alternatives"), hardlink("usr/bin/again", "usr/bin/tool"),
        member("bin/by-link", b"1"), member("./a//b/./c", b"2"), member("empty"), member("x" * 255, b"3"),
        member("/".join(["long" * 10] * 20), b"4"), member("pipe", kind=tarfile.FIFOTYPE),
        member("schön \udcff", b"5"), folder("locked", mode=0o000), member("locked/in", b"6"))
    fields = unpack(archive, box)
    assert fields["format"] == "layer" and fields["compression"] == "none"
    assert fields["diff_id"] == "sha256:" + hashlib.sha256(archive).hexdigest()
    tool = os.stat(box / "usr/bin/tool")
    assert stat.S_IMODE(tool.st_mode) == 0o755 and tool.st_mtime == 1500000000 and tool.st_nlink == 2
    assert os.readlink(box / "bin") == "usr/bin" and os.readlink(box / "etc-alt") == "/etc/alternatives"
    assert (box / "usr/bin/by-link").read_bytes() == b"1"
    assert (box / "a/b/c").read_bytes() == b"2"
    assert (box / ("x" * 255)).read_bytes() == b"3"
    assert (box / "/".join(["long" * 10] * 20)).read_bytes() == b"4"
    assert stat.S_ISFIFO(os.lstat(box / "pipe").st_mode)
    assert stat.S_IMODE(os.stat(box / "locked").st_mode) == 0
    assert os.stat(box / "usr/bin").st_mtime == 1600000000
    assert fields["entries"] == "16" and fields["owners_left"] == "0"


@pytest.mark.parametrize("fmt", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_format_of_long_names(fmt, box):
    name = "p" * 90 + "/" + "n" * 90
    assert "error" not in unpack(tar(member(name, b"x" * 1000), fmt=fmt), box)
    assert (box / name).read_bytes() == b"x" * 1000


def test_gzip_zstd_and_plain_are_the_same(tmp_path):
    archive = tar(member("a", os.urandom(300000)), member("b", b"y" * 100000))
    zstd = subprocess.run(["zstd", "-q", "-c"], input=archive, capture_output=True) if which("zstd") else None
    for i, (data, kind) in enumerate([(archive, "none"), (gz(archive), "gzip"),
                                      (gz(archive[:5000]) + gz(archive[5000:]) + b"\0" * 100, "gzip"),
                                      (zstd.stdout if zstd else b"", "zstd")]):
        if not data:
            continue
        (tmp_path / str(i)).mkdir()
        fields = unpack(data, tmp_path / str(i))
        assert fields["compression"] == kind
        assert fields["diff_id"] == "sha256:" + hashlib.sha256(archive).hexdigest()
        assert (tmp_path / str(i) / "b").read_bytes() == b"y" * 100000


def which(name):
    return any(os.access(f"{d}/{name}", os.X_OK) for d in os.environ["PATH"].split(":"))


def test_setuid_is_cut_unless_asked(tmp_path):
    archive = tar(member("su", b"x", mode=0o6755), folder("tmp", mode=0o1777))
    for keep in (False, True):
        d = tmp_path / str(keep)
        d.mkdir()
        fields = unpack(archive, d, "layer", *(["--keep-setuid"] if keep else []))
        assert stat.S_IMODE(os.stat(d / "su").st_mode) == (0o6755 if keep else 0o755)
        assert stat.S_IMODE(os.stat(d / "tmp").st_mode) == 0o1777
        assert fields["setuid_cut"] == ("0" if keep else "1")


def test_nodes_of_dev_are_left_out(box):
    fields = unpack(tar(folder("dev"), member("dev/null", kind=tarfile.CHRTYPE), member("dev/sda", kind=tarfile.BLKTYPE)), box)
    assert fields["nodes_left"] == "2" and os.listdir(box / "dev") == []


def xattrs_work(path):
    try:
        os.setxattr(path, "user.try", b"1")
        os.removexattr(path, "user.try")
        return True
    except OSError:
        return False


def test_only_harmless_attributes_are_kept(box):
    if not xattrs_work(box):
        pytest.skip("no user attributes on this file system")
    pax = {"SCHILY.xattr.user.note": "kept", "SCHILY.xattr.user.overlay.redirect": "/etc",
           "SCHILY.xattr.user.overlay.opaque": "y", "SCHILY.xattr.trusted.overlay.opaque": "y",
           "SCHILY.xattr.security.capability": "x" * 20, "SCHILY.xattr.system.posix_acl_access": "x"}
    fields = unpack(tar(folder("d", pax=pax), member("f", b"x", pax=pax)), box)
    assert os.listxattr(box / "f") == ["user.note"] and os.listxattr(box / "d") == ["user.note"]
    assert os.getxattr(box / "f", "user.note") == b"kept"
    assert fields["xattrs_left"] == "10"


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def test_whiteouts_become_overlays(box):
    if not xattrs_work(box):
        pytest.skip("no user attributes on this file system")
    fields = unpack(tar(member("etc/.wh.gone"), folder("opt"), member("opt/.wh..wh..opq"), member("opt/new", b"x"),
                        member(".wh..wh.plnk"), member(".wh.first"), folder("first"), member("first/a", b"x"),
                        folder("second"), member(".wh.second"), member("third", b"x"), member(".wh.third"),
                        member(".wh.fourth"), member("fourth", b"x")), box)
    assert "error" not in fields, fields
    assert is_whiteout(box / "etc/gone")
    assert os.getxattr(box / "opt", "user.overlay.opaque") == b"y" and (box / "opt/new").read_bytes() == b"x"
    # What the same layer adds under that name stays; a directory hides the lower one.
    for d in ("first", "second"):
        assert os.getxattr(box / d, "user.overlay.opaque") == b"y"
    assert (box / "third").read_bytes() == b"x" and (box / "fourth").read_bytes() == b"x"
    assert not [n for d, ds, fs in os.walk(box) for n in ds + fs if n.startswith(".wh.")]
    assert fields["whiteouts"] == "7"


@pytest.mark.skipif(not ROOT, reason="needs an overlay mount")
def test_the_kernel_takes_the_whiteouts(tmp_path):
    """As the sandbox will mount it: in a user namespace, with userxattr."""
    low, high, merged = tmp_path / "low", tmp_path / "high", tmp_path / "merged"
    for d in (low, high, merged):
        d.mkdir()
    unpack(tar(member("etc/gone", b"1"), member("etc/stays", b"1"), folder("opt"), member("opt/old", b"1")), low)
    unpack(tar(member("etc/.wh.gone"), folder("opt"), member("opt/.wh..wh..opq"), member("opt/new", b"2")), high)
    p = subprocess.run(["unshare", "-Urm", "sh", "-ec",
                        f"mount -t overlay -o userxattr,lowerdir={high}:{low} none {merged}; cd {merged}; ls etc opt"],
                       capture_output=True, text=True)
    if p.returncode != 0 and "mount" in p.stderr:
        pytest.skip(p.stderr.strip())
    assert p.stdout.split() == ["etc:", "stays", "opt:", "new"], p.stderr


def test_a_root_tree_keeps_such_names(box):
    unpack(tar(member(".wh.name", b"x")), box, "root")
    assert (box / ".wh.name").read_bytes() == b"x"


def test_what_is_there_is_replaced_not_written_through(box):
    unpack(tar(member("a", b"old"), hardlink("b", "a"), symlink("c", "a"), folder("d"), member("a", b"new"),
               member("c", b"file"), symlink("d", "a")), box)
    assert (box / "a").read_bytes() == b"new" and (box / "b").read_bytes() == b"old"
    assert not os.path.islink(box / "c") and (box / "c").read_bytes() == b"file"
    assert os.readlink(box / "d") == "a"


@pytest.mark.skipif(not ROOT, reason="owners are root's to set")
def test_owners_are_kept(box):
    fields = unpack(tar(member("a", b"x", uid=1234, gid=99), symlink("s", "a", uid=7, gid=8), member("big", b"x", uid=1 << 33)), box)
    assert (os.stat(box / "a").st_uid, os.stat(box / "a").st_gid) == (1234, 99)
    assert (os.lstat(box / "s").st_uid, os.lstat(box / "s").st_gid) == (7, 8)
    assert fields["owners_left"] == "1"


# --- the outer archive ---

HEX = "ab" * 32


def test_image_archives_are_told_apart(tmp_path):
    cases = {
        "oci": tar(member("oci-layout", b"{}"), folder("blobs"), folder("blobs/sha256"), member(f"blobs/sha256/{HEX}", b"x"), member("index.json", b"{}")),
        "docker": tar(member(f"{HEX}.json", b"{}"), folder(HEX), member(f"{HEX}/layer.tar", b"x"), member("manifest.json", b"[]")),
        "root": tar(folder("./"), folder("etc"), member("etc/passwd", b"x")),
    }
    for kind, archive in cases.items():
        (tmp_path / kind).mkdir()
        assert unpack(gz(archive), tmp_path / kind, "image")["format"] == kind
    assert (tmp_path / f"oci/blobs/sha256/{HEX}").read_bytes() == b"x"
    assert (tmp_path / f"docker/{HEX}/layer.tar").read_bytes() == b"x"
    assert os.listdir(tmp_path / "root") == []


def test_a_repeated_layer_of_docker_save(box):
    other = "cd" * 32
    fields = unpack(tar(member(f"{HEX}/layer.tar", b"x"), symlink(f"{other}/layer.tar", f"../{HEX}/layer.tar"), member("manifest.json", b"[]")), box, "image")
    assert fields["format"] == "docker" and (box / f"{other}/layer.tar").read_bytes() == b"x"


@pytest.mark.parametrize("bad", [symlink("manifest.json", "/etc/passwd"), symlink(f"{HEX}/layer.tar", "../../outside/secret"),
                                 hardlink("index.json", "../outside/secret"), member("index.json", kind=tarfile.CHRTYPE),
                                 member("../index.json", b"x"), symlink(f"{HEX}/layer.tar", f"../{'cd' * 32}/layer.tar")])
def test_hostile_image_archives_are_refused(bad, box):
    assert "error" in unpack(tar(bad), box, "image")
    assert [n for d, ds, fs in os.walk(box) for n in fs] == []


def test_a_blob_that_stands_twice_is_refused(box):
    assert "error" in unpack(tar(member("index.json", b"1"), member("index.json", b"2")), box, "image")


# --- clearing ---

def test_clear_follows_nothing(box, tmp_path):
    unpack(tar(folder("d"), symlink("d/out", "../../outside"), member("f", b"x"), folder("ro", mode=0), member("ro/x", b"1"), member(".wh.w")), box)
    deep = box
    for _ in range(300):
        deep = deep / "e"
    os.makedirs(deep)
    assert unpack(b"", box, "clear") == {}
    assert os.listdir(box) == []
