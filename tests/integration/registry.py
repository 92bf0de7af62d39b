"""A small image registry on loopback: the v2 API's reading half, with token auth, redirects to another
host name, and every way of misbehaving that the tests ask for."""
import hashlib
import http.server
import json
import threading
import urllib.parse

OCI = "application/vnd.oci.image."


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    def __init__(self, auth=False, redirect=False):
        self.auth, self.redirect = auth, redirect
        self.blobs, self.manifests = {}, {}
        self.seen = []          # (path, headers)
        self.storage_seen = []  # the same, of the other host
        self.token = "t0k3n-of-the-test"
        self.wrong = {}         # digest -> other bytes to send
        self.cut = {}           # digest -> bytes after which the connection is cut
        self.loops = False      # every blob redirects to itself
        self.redirect_to = None
        self.deny = False
        self.slow = None        # an Event that layers wait for
        self.storage = self._serve(self._storage)
        self.main = self._serve(self._registry)
        self.host = f"127.0.0.1:{self.main.server_port}"
        self.storage_host = f"localhost:{self.storage.server_port}"

    def _serve(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                answer(self)

            def log_message(self, *_):
                pass

        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        s.daemon_threads = True
        threading.Thread(target=s.serve_forever, daemon=True).start()
        return s

    def close(self):
        for s in (self.main, self.storage):
            s.shutdown()
            s.server_close()

    # --- content ---

    def add_blob(self, data):
        self.blobs[digest(data)] = data
        return {"mediaType": OCI + "layer.v1.tar+gzip", "digest": digest(data), "size": len(data)}

    def add_manifest(self, doc, *tags, kind="manifest"):
        data = json.dumps(doc).encode()
        for name in (digest(data), *tags):
            self.manifests[name] = (data, OCI + kind + ".v1+json")
        return {"mediaType": OCI + kind + ".v1+json", "digest": digest(data), "size": len(data)}

    def add_image(self, layers, *tags, diff_ids=None, config=None, arch="amd64"):
        """layers: [(blob, uncompressed tar)]"""
        c = json.dumps({"os": "linux", "architecture": arch, "config": config or {}, "rootfs": {
            "type": "layers", "diff_ids": diff_ids or [digest(plain) for _, plain in layers]}}).encode()
        cd = dict(self.add_blob(c), mediaType=OCI + "config.v1+json")
        return self.add_manifest({"schemaVersion": 2, "config": cd, "layers": [self.add_blob(b) for b, _ in layers]}, *tags)

    # --- answers ---

    def _send(self, h, status, body=b"", headers=()):
        h.send_response(status)
        for k, v in headers:
            h.send_header(k, v)
        h.send_header("content-length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def _blob(self, h, name):
        data = self.wrong.get(name, self.blobs.get(name))
        if data is None:
            return self._send(h, 404)
        if self.slow and data[:2] == b"\x1f\x8b":
            self.slow.wait(20)
        h.send_response(200)
        h.send_header("content-length", str(len(data)))
        h.end_headers()
        try:
            h.wfile.write(data[:self.cut.get(name, len(data))])
        except OSError:
            h.close_connection = True
        if name in self.cut:
            h.close_connection = True

    def _storage(self, h):
        self.storage_seen.append((h.path, dict(h.headers)))
        self._blob(h, h.path.rsplit("/", 1)[1])

    def _registry(self, h):
        url = urllib.parse.urlsplit(h.path)
        self.seen.append((h.path, dict(h.headers)))
        if url.path == "/token":
            if self.deny:
                return self._send(h, 403)
            return self._send(h, 200, json.dumps({"token": self.token}).encode())
        if self.auth and h.headers.get("authorization") != f"Bearer {self.token}":
            return self._send(h, 401, b"{}", [("www-authenticate",
                f'Bearer realm="http://{self.host}/token",service="test",scope="repository:team/app:pull"')])
        kind, name = url.path.split("/")[-2:]
        if kind == "manifests" and name in self.manifests:
            data, media = self.manifests[name]
            return self._send(h, 200, self.wrong.get(name, data), [("content-type", media)])
        if kind == "blobs" and self.loops:
            return self._send(h, 307, b"", [("location", h.path)])
        if kind == "blobs" and self.redirect_to:
            return self._send(h, 307, b"", [("location", self.redirect_to)])
        if kind == "blobs" and self.redirect:
            return self._send(h, 307, b"", [("location", f"http://{self.storage_host}/data/{name}")])
        if kind == "blobs":
            return self._blob(h, name)
        return self._send(h, 404)
