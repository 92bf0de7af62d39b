"""A session, a command, a file, live output: the agentbox interface from Python.

    pip install grpcio protobuf
    PYTHONPATH=examples/agentbox/gen python examples/agentbox/python_client.py

gen/ is made of api/sandbox/v1/sandbox.proto by `make proto`. HOLT_GRPC says where holtd listens (default 127.0.0.1:8122), HOLT_TOKEN who asks; a port of --seed-ports needs no token.
"""
import os

import grpc
from sandbox.v1 import sandbox_pb2 as pb
from sandbox.v1 import sandbox_pb2_grpc


def main():
    token = os.environ.get("HOLT_TOKEN")
    who = [("authorization", f"Bearer {token}")] if token else []
    with grpc.insecure_channel(os.environ.get("HOLT_GRPC", "127.0.0.1:8122")) as channel:
        box = sandbox_pb2_grpc.SandboxServiceStub(channel)
        session = box.CreateSession(pb.CreateSessionRequest(), metadata=who).session.session_id
        try:
            box.WriteFile(pb.WriteFileRequest(session_id=session, path="hello.py", content="print('hello from', __file__)"),
                          metadata=who)
            done = box.Exec(pb.ExecRequest(session_id=session, command="python3 hello.py"), metadata=who)
            print(f"exit {done.exit_code}: {done.stdout}", end="")
            for part in box.ExecStream(pb.ExecStreamRequest(session_id=session, command="for i in 1 2 3; do echo $i; sleep 0.2; done"),
                                       metadata=who):
                print(part.type, part.data.rstrip() if part.type != "exit" else part.exit_code)
        finally:
            box.DestroySession(pb.DestroySessionRequest(session_id=session), metadata=who)


if __name__ == "__main__":
    main()
