"""Repositories over HTTP on loopback: git's own CGI program behind a small server."""
import http.server
import os
import shutil
import subprocess
import threading

BACKEND = "/usr/lib/git-core/git-http-backend"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        path, _, query = self.path.partition("?")
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        if self.server.password and self.headers.get("Authorization") != self.server.password:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.server.root, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_CONFIG_COUNT": "2",
               "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
               "GIT_CONFIG_KEY_1": "uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_1": "true",
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        out = subprocess.run([BACKEND], input=body, env=env, capture_output=True, check=False).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for key, value in fields.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def log_message(self, *args):
        pass


def git(*args, cwd=None):
    env = {**os.environ, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@test", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@test", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout.strip()


class GitServer:
    """One repository, `app.git`, with the branches main and other; commits has the ids of main."""

    def __init__(self, directory, password=None):
        self.root = str(directory)
        work = f"{directory}/work"
        git("init", "-q", "-b", "main", work)
        self.commits = []
        for text in ("one", "two", "three"):
            os.makedirs(f"{work}/src", exist_ok=True)
            for name in ("README.md", "src/main.txt"):
                with open(f"{work}/{name}", "w", encoding="utf-8") as f:
                    f.write(f"{text}\n")
            git("add", "-A", cwd=work)
            git("commit", "-q", "-m", text, cwd=work)
            self.commits.append(git("rev-parse", "HEAD", cwd=work))
        git("branch", "other", self.commits[0], cwd=work)
        git("clone", "-q", "--bare", work, f"{directory}/app.git")
        shutil.rmtree(work)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.root, self.server.asked, self.server.password = self.root, [], password
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://git.test:{self.port}/app.git"

    @property
    def asked(self):
        return self.server.asked

    def close(self):
        self.server.shutdown()
        self.server.server_close()
