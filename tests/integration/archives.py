"""Archives for the tests of images: sound ones and hostile ones."""
import gzip
import io
import tarfile


def member(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644, uid=0, gid=0, mtime=1700000000, pax=None):
    m = tarfile.TarInfo()
    m.name, m.type, m.linkname, m.mode, m.uid, m.gid, m.mtime = name, kind, link, mode, uid, gid, mtime
    m.size = len(data)
    m.pax_headers = dict(pax or {})
    return m, data


def folder(name, mode=0o755, **more):
    return member(name, kind=tarfile.DIRTYPE, mode=mode, **more)


def symlink(name, to, **more):
    return member(name, kind=tarfile.SYMTYPE, link=to, **more)


def hardlink(name, to, **more):
    return member(name, kind=tarfile.LNKTYPE, link=to, **more)


def tar(*members, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as t:
        for m, data in members:
            t.addfile(m, io.BytesIO(data) if data else None)
    return out.getvalue()


def raw_header(name, size=0, kind=b"0", mode=0o644, link=b"", magic=b"ustar\x0000", size_field=None):
    """One header block, with a right checksum, of anything one likes."""
    h = bytearray(512)
    h[0:len(name)] = name
    h[100:108] = b"%07o\0" % mode
    h[108:116] = h[116:124] = b"0000000\0"
    h[124:136] = size_field or b"%011o\0" % size
    h[136:148] = b"%011o\0" % 1700000000
    h[156:157] = kind
    h[157:157 + len(link)] = link
    h[257:257 + len(magic)] = magic
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)


def gz(data, level=6):
    return gzip.compress(data, level, mtime=0)


END = b"\0" * 1024
