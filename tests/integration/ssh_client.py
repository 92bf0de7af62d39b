"""A client's end of SSH into a sandbox: a key, a certificate, a file of known hosts, and stock programs that use them."""
import contextlib
import os
import shutil
import subprocess

API = "/holt/v1"
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin")


class Client:
    def __init__(self, d, directory, box, **certificate):
        self.d, self.dir, self.box = d, directory, box
        os.makedirs(directory, exist_ok=True)
        self.key = f"{directory}/key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        self.at = d.ok("POST", f"{API}/sandboxes/{box}/ssh", {})
        with open(f"{directory}/known", "w", encoding="ascii") as f:
            f.write(self.at["known_hosts"] + "\n")
        self.renew(**certificate)

    def renew(self, token="admin", sandbox=None, **more):
        with open(f"{self.key}.pub", encoding="ascii") as f:
            public = f.read()
        status, self.certificate, _ = self.d.request("POST", f"{API}/access/certificates", {"public_key": public, "sandbox": sandbox or self.box, **more}, token=token)
        assert status == 201, self.certificate
        with open(f"{self.key}-cert.pub", "w", encoding="ascii") as f:
            f.write(self.certificate["certificate"] + "\n")
        return self.certificate

    @property
    def options(self):
        return ["-F", "/dev/null", "-i", self.key, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes",
                "-o", f"UserKnownHostsFile={self.dir}/known", "-o", "LogLevel=ERROR"]

    def ssh_argv(self, *command, user="root", more=()):
        return ["ssh", *self.options, *more, "-p", str(self.at["port"]), f"{user}@127.0.0.1", *command]

    def ssh(self, *command, user="root", more=(), **how):
        how = {"capture_output": True, "text": True, "timeout": 60, "stdin": None if "input" in how else subprocess.DEVNULL, **how}
        return subprocess.run(self.ssh_argv(*command, user=user, more=more), **{k: v for k, v in how.items() if k != "stdin" or v is not None})

    def run(self, *argv, **how):
        return subprocess.run(argv, **{"capture_output": True, "text": True, "timeout": 100, **how})

    @contextlib.contextmanager
    def open(self, *command, **more):
        """A session that goes on."""
        p = subprocess.Popen(self.ssh_argv(*command, **more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield p
        finally:
            p.kill()
            p.communicate()

    def sessions(self, **query):
        text = "&".join(f"{k}={v}" for k, v in query.items())
        return self.d.ok("GET", f"{API}/access/sessions?{text}")["sessions"]
