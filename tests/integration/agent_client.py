"""An agent of agentic.sandbox.v1.AgentService and a client of its Exec, made from the published .proto by protoc and grpcio
at run time.  The agent runs real commands and keeps them while its link is gone."""
import contextlib
import fcntl
import os
import pty
import queue
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from daemon import ROOT, wait_for

SERVICE = "agentic.sandbox.v1.AgentService"
PROVISIONING, READY = 8, 2


def load():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["protoc", "-I", f"{ROOT}/api", f"--descriptor_set_out={d}/set", "agentic/v1/agentic.proto"], check=True,
                       cwd=f"{ROOT}/api")
        with open(f"{d}/set", "rb") as f:
            files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return {m.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"agentic.sandbox.v1.{m.name}"))
            for m in files.file[0].message_type}


M = load()


def channel(port):
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)])


class Command:
    """One process of the agent.  Output that no link took yet waits."""

    def __init__(self, agent, q):
        self.agent, self.id, self.pty = agent, q.command_id, q.allocate_pty
        self.started = time.time()
        self.command = " ".join([q.command, *q.args])
        env = {**os.environ, **q.env}
        argv = [q.command, *q.args]
        if self.pty:
            self.pid, self.fd = pty.fork()
            if self.pid == 0:
                os.execvpe(argv[0], argv, env)
            self.resize(q.pty_rows, q.pty_cols)
            threads = [threading.Thread(target=self.read, args=(self.fd, "stdout"), daemon=True)]
        else:
            self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            start_new_session=True, cwd=q.working_dir or None)
            self.pid = self.process.pid
            threads = [threading.Thread(target=self.read, args=(f.fileno(), s), daemon=True)
                       for f, s in ((self.process.stdout, "stdout"), (self.process.stderr, "stderr"))]
        for t in threads:
            t.start()
        threading.Thread(target=self.reap, args=(threads,), daemon=True).start()

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def read(self, fd, stream):
        while True:
            try:
                data = os.read(fd, 4096)
            except OSError:  # the terminal's other end is closed
                data = b""
            if not data:
                return
            self.agent.send(**{stream: M["OutputChunk"](stream_id=self.id, data=data)})

    def reap(self, threads):
        status = os.waitpid(self.pid, 0)[1] if self.pty else self.process.wait()
        code = os.waitstatus_to_exitcode(status) if self.pty else status
        for t in threads:
            t.join()
        code = 128 - code if code < 0 else code
        self.agent.commands.pop(self.id, None)
        self.agent.send(command_result=M["CommandResult"](command_id=self.id, exit_code=code, success=code == 0,
                                                          duration_ms=int((time.time() - self.started) * 1000)))

    def input(self, data, eof):
        fd = self.fd if self.pty else self.process.stdin.fileno()
        if data:
            os.write(fd, data)
        if eof and not self.pty:
            self.process.stdin.close()

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Agent:
    """Connected from here on; what it was told is in .seen."""

    def __init__(self, port, name, secret, connect=True, **registration):
        self.port, self.name, self.secret = port, name, secret
        self.registration = {"hostname": f"{name}.test", "ip_address": "192.0.2.7", "profile": "agentic-dev", **registration}
        self.commands, self.held, self.seen, self.error = {}, [], [], None
        self.outbox = None
        if connect:
            self.connect()

    def connect_with(self, first):
        """Another first message than the registration."""
        self.connect(registered=False, first=first)

    def connect(self, registered=True, first=None):
        self.error, self.outbox = None, queue.Queue()
        before = len(self.got("session_query"))
        self.channel = channel(self.port)
        call = self.channel.stream_stream(f"/{SERVICE}/Connect", M["AgentMessage"].SerializeToString, M["ManagementMessage"].FromString)
        metadata = [("x-agent-id", self.name)] if self.name else []
        if self.secret is not None:
            metadata.append(("x-agent-secret", self.secret))
        self.call = call(iter(self.outbox.get, None), metadata=metadata)
        own = M["AgentRegistration"](agent_id=self.name, system=M["SystemInfo"](os="Linux", kernel="6.0", cpu_cores=3), **self.registration)
        self.send(**(first or {"registration": own}))
        self.thread = threading.Thread(target=self.listen, args=(self.call,), daemon=True)
        self.thread.start()
        if registered:
            wait_for(lambda: self.error or len(self.got("session_query")) > before)
        return self

    def got(self, kind):
        return [m for m in self.seen if m.WhichOneof("payload") == kind]

    def send(self, **payload):
        if self.outbox is not None:
            self.outbox.put(M["AgentMessage"](**payload))

    def beat(self, status=READY, **more):
        self.send(heartbeat=M["Heartbeat"](agent_id=self.name, status=status, cpu_percent=12.5, memory_used_bytes=1 << 20,
                                           uptime_seconds=77, **more))

    def measure(self):
        self.send(metrics=M["Metrics"](agent_id=self.name, cpu_percent=25, memory_used_bytes=2 << 20, memory_total_bytes=8 << 20,
                                       disk_used_bytes=1, disk_total_bytes=2, load_avg=[0.5, 0.25, 0.125]))

    def listen(self, call):
        try:
            for m in call:
                self.seen.append(m)
                self.obey(m)
        except grpc.RpcError as e:
            self.error = e
        except Exception as e:  # a fault of this client
            self.error = e
            raise

    def obey(self, m):
        kind = m.WhichOneof("payload")
        if kind == "session_query":
            sessions = [M["ActiveSession"](command_id=c.id, command=c.command, is_pty=c.pty) for c in self.commands.values()]
            self.send(session_report=M["SessionReport"](agent_id=self.name, sessions=sessions))
            self.beat()
        elif kind == "session_reconcile":
            for i in m.session_reconcile.kill_session_ids:
                self.commands[i].signal(signal.SIGKILL)
            self.send(session_reconcile_ack=M["SessionReconcileAck"](
                agent_id=self.name, killed_session_ids=m.session_reconcile.kill_session_ids,
                kept_session_ids=m.session_reconcile.keep_session_ids))
        elif kind == "command":
            q = m.command
            try:
                self.commands[q.command_id] = Command(self, q)
            except OSError as e:
                self.send(command_result=M["CommandResult"](command_id=q.command_id, exit_code=127, error=str(e)))
        elif kind == "stdin" and m.stdin.command_id in self.commands:
            self.commands[m.stdin.command_id].input(m.stdin.data, m.stdin.eof)
        elif kind == "pty_control" and m.pty_control.command_id in self.commands:
            c = self.commands[m.pty_control.command_id]
            if m.pty_control.HasField("resize"):
                c.resize(m.pty_control.resize.rows, m.pty_control.resize.cols)
            else:
                c.signal(m.pty_control.signal.signal_number)

    def drop(self):
        """The link goes; what runs stays."""
        self.outbox.put(None)
        self.call.cancel()
        self.channel.close()
        self.thread.join(10)
        self.outbox = None

    def end(self):
        if self.outbox is not None:
            self.drop()
        for c in list(self.commands.values()):
            c.signal(signal.SIGKILL)


def run(port, agent, command, *args, token=None, **more):
    """Exec: (stdout, stderr, the last message)."""
    with channel(port) as c:
        call = c.unary_stream(f"/{SERVICE}/Exec", M["ExecRequest"].SerializeToString, M["ExecOutput"].FromString)
        metadata = [("authorization", f"Bearer {token}")] if token else []
        out = list(call(M["ExecRequest"](agent_id=agent, command=command, args=args, **more), metadata=metadata, timeout=60))
    text = {1: b"", 2: b""}
    for o in out[:-1]:
        text[o.stream] += o.data
    assert out[-1].complete and not any(o.complete for o in out[:-1]), out
    return text[1], text[2], out[-1]
