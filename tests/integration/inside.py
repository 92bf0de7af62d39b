"""What is run and asked from inside a sandbox."""
import json


class Inside:
    """A sandbox of holtd d, known by its id."""

    def __init__(self, d, sandbox):
        self.d, self.id = d, sandbox
        self.path = f"/holt/v1/sandboxes/{sandbox}"

    def run(self, *argv, **more):
        return self.d.ok("POST", f"{self.path}/execs", {"command": list(argv), "timeout_ms": 30000, **more})

    def python(self, code, *args):
        r = self.run("python3", "-c", code, *args)
        assert r["exit_code"] == 0, r["stderr"]
        return r["stdout"]

    def curl(self, method, url, *options, body=None, headers=()):
        """(status, content type, text); a body that is no text goes as JSON."""
        argv = ["curl", "-sS", "-g", "-m", "60", "-X", method, "-w", "\n%{http_code} %{content_type}", *options, url]
        for h in headers:
            argv += ["-H", h]
        more = {}
        if body is not None:
            argv += ["--data-binary", "@-"]
            more["stdin"] = body if isinstance(body, str) else json.dumps(body)
        r = self.run(*argv, **more)
        assert r["exit_code"] == 0, r
        text, last = r["stdout"].rsplit("\n", 1)
        status, _, kind = last.partition(" ")
        return int(status), kind, text


class Box(Inside):
    """Made for it."""

    def __init__(self, d, **spec):
        self.made = d.ok("POST", "/holt/v1/sandboxes", spec)
        super().__init__(d, self.made["id"])

    def ask_json(self, method, url, *options, **more):
        """(status, JSON or text)"""
        status, _, text = self.curl(method, url, *options, **more)
        return status, json.loads(text) if text.strip()[:1] in ("{", "[") else text
