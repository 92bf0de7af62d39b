"""A client of sandbox.v1.SandboxService, made from the published .proto by protoc and grpcio at run time."""
import subprocess
import tempfile

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from daemon import ROOT

SERVICE = "sandbox.v1.SandboxService"
DEFAULT_HOSTS = ["pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "github.com", "raw.githubusercontent.com",
                 "objects.githubusercontent.com", "crates.io", "static.crates.io"]


def load():
    """{message name: class}, and the service's descriptor."""
    with tempfile.TemporaryDirectory() as d:
        out = f"{d}/set"
        subprocess.run(["protoc", "-I", f"{ROOT}/api", f"--descriptor_set_out={out}", "sandbox/v1/sandbox.proto"], check=True,
                       cwd=f"{ROOT}/api")
        with open(out, "rb") as f:
            files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    names = [m.name for m in files.file[0].message_type]
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"sandbox.v1.{n}")) for n in names}, \
        pool.FindServiceByName(SERVICE)


MESSAGES, DESCRIPTOR = load()


class Sandbox:
    """Calls by name: Sandbox(port).Exec(session_id=…, command=…)."""

    def __init__(self, port, token=None):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[
            ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)])
        self.metadata = [("authorization", f"Bearer {token}")] if token else []

    def call(self, name, fields, rpc_timeout=60):
        """A unary call that is under way: a future.  In which order several are sent, grpcio decides."""
        m = DESCRIPTOR.methods_by_name[name]
        request, reply = MESSAGES[m.input_type.name], MESSAGES[m.output_type.name]
        call = self.channel.unary_unary(f"/{SERVICE}/{name}", request.SerializeToString, reply.FromString)
        return call.future(request(**fields), timeout=rpc_timeout, metadata=self.metadata)

    def __getattr__(self, name):
        m = DESCRIPTOR.methods_by_name[name]
        request, reply = MESSAGES[m.input_type.name], MESSAGES[m.output_type.name]
        kind = self.channel.unary_stream if m.server_streaming else self.channel.unary_unary
        call = kind(f"/{SERVICE}/{name}", request.SerializeToString, reply.FromString)
        return lambda rpc_timeout=120, **fields: call(request(**fields), timeout=rpc_timeout, metadata=self.metadata)

    def close(self):
        self.channel.close()
