"""A server for the inside of a sandbox, by its standard library alone: `python3 inside_server.py PORT [DIRECTORY]`.
GET /echo says what arrived, /big?N sends N bytes, /slow one byte a second, /events an event stream, /ws echoes a
WebSocket, POST /md5 the digest of the body; anything else is a file of DIRECTORY.  Prints its port."""
import base64
import functools
import hashlib
import http.server
import struct
import sys
import time

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Server(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def say(self, body, kind="text/plain", status=200):
        self.send_response(status)
        for value in ("mine=1; Path=/", "tossed=1; Domain=localhost; Path=/", "holt_session=evil; Path=/",
                      "holt_preview=evil; Path=/"):
            self.send_header("Set-Cookie", value)
        self.send_header("Service-Worker-Allowed", "/")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/echo":
            self.say((self.requestline + "\n" + str(self.headers)).encode())
        elif path == "/big":
            self.big(int(query))
        elif path == "/slow":
            self.stream(b".", "text/plain")
        elif path == "/events":
            self.stream(b"data: tick\n\n", "text/event-stream")
        elif path == "/ws":
            self.websocket()
        elif path == "/redirect":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/echo")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def do_POST(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            digest = hashlib.md5()
            while size := int(self.rfile.readline(), 16):
                digest.update(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        else:
            digest = hashlib.md5(self.rfile.read(int(self.headers["Content-Length"])))
        self.say(digest.hexdigest().encode())

    def big(self, count):
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        block = bytes(range(256)) * 256
        for at in range(0, count, len(block)):
            self.wfile.write(block[:count - at])

    def stream(self, part, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(part)
                self.wfile.flush()
                time.sleep(0.1)
        except OSError:
            print("gone", flush=True)
        self.close_connection = True

    def websocket(self):
        key = base64.b64encode(hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() + GUID).digest())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", key.decode())
        self.end_headers()
        self.close_connection = True
        while head := self.rfile.read(2):
            n = head[1] & 127
            if n == 126:
                n = struct.unpack(">H", self.rfile.read(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
            size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
            self.wfile.write(head[:1] + size + data)
            if head[0] & 15 == 8:
                return


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", int(sys.argv[1])), functools.partial(Server, directory=sys.argv[2] if len(sys.argv) > 2 else "."))
    print(server.server_port, flush=True)
    server.serve_forever()
