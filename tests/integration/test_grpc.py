"""gRPC by Python grpcio and node @grpc/grpc-js: health on holtd, every kind of call on the echo server."""
import json
import os
import threading
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from daemon import ROOT, wait_for

SERVICE = "/test.Echo/"


def raw(b):
    return b


def open_channel(port, *options):
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[
        ("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), *options])


@pytest.fixture(scope="module")
def channel(echo):
    with open_channel(echo.port) as c:
        yield c


def unary(c, name="Unary"):
    return c.unary_unary(SERVICE + name, raw, raw)


def bidi(c, name="Bidi"):
    return c.stream_stream(SERVICE + name, raw, raw)


def server_stream(c, message, count):
    """So many copies of the message."""
    return c.unary_stream(SERVICE + "ServerStream", raw, raw)(message, timeout=60, metadata=[("x-count", str(count))])


def test_unary(channel):
    for message in (b"", b"x", os.urandom(100000)):
        assert unary(channel)(message, timeout=60) == message


def test_metadata_both_ways(channel):
    reply, call = unary(channel).with_call(b"m", timeout=60, metadata=[("x-echo", "text"), ("x-echo-bin", b"\0\xff\1")])
    assert reply == b"m"
    seen = {k: v for k, v in [*call.initial_metadata(), *call.trailing_metadata()]}
    assert seen.get("x-echo") == "text" and seen.get("x-echo-bin") == b"\0\xff\1", seen


def test_server_streaming(channel):
    assert list(server_stream(channel, b"again", 100)) == [b"again"] * 100
    assert list(server_stream(channel, b"never", 0)) == []


def test_bidirectional(channel):
    messages = [f"m{i}".encode() * (i % 50 + 1) for i in range(500)]
    assert list(bidi(channel)(iter(messages), timeout=60)) == messages


def test_bidirectional_answers_before_the_client_ends(channel):
    go_on = threading.Semaphore(1)

    def ask():
        for i in range(5):
            assert go_on.acquire(timeout=60)
            yield str(i).encode()

    got = []
    for reply in bidi(channel)(ask(), timeout=60):
        got.append(reply)
        go_on.release()
    assert got == [b"0", b"1", b"2", b"3", b"4"]


def test_deadline(channel):
    begin = time.monotonic()
    with pytest.raises(grpc.RpcError) as e:
        unary(channel)(b"hang", timeout=0.5)
    assert e.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert time.monotonic() - begin < 30


def test_cancellation_reaches_the_server(echo, channel):
    told, hung = (echo.log().count(f"grpc {what}") for what in ("cancelled", "hangs"))
    call = unary(channel).future(b"hang", timeout=60)
    wait_for(lambda: echo.log().count("grpc hangs") > hung)
    assert not call.done()
    call.cancel()
    wait_for(call.done, 60)
    assert call.code() == grpc.StatusCode.CANCELLED
    wait_for(lambda: echo.log().count("grpc cancelled") > told, 60)
    assert unary(channel)(b"next", timeout=60) == b"next"


def test_unknown_method(channel):
    with pytest.raises(grpc.RpcError) as e:
        unary(channel, "Nothing")(b"", timeout=60)
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")


def test_an_error_with_its_message(channel):
    with pytest.raises(grpc.RpcError) as e:
        unary(channel)(b"fail", timeout=60)
    assert e.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert "100% ünlucky" in e.value.details()


def test_a_big_message(channel):
    message = os.urandom(3 << 20)
    assert unary(channel)(message, timeout=60) == message


def test_a_message_over_the_limit(channel):
    with pytest.raises(grpc.RpcError) as e:
        unary(channel)(b"x" * (64 << 20), timeout=60)
    assert e.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert unary(channel)(b"next", timeout=60) == b"next"


def test_many_calls_at_once(channel):
    calls = [unary(channel).future(str(i).encode(), timeout=60) for i in range(1000)]
    assert [c.result() for c in calls] == [str(i).encode() for i in range(1000)]


def test_a_slow_reader_of_a_stream(echo, channel):
    before = echo.rss_kib()
    call = server_stream(channel, b"x" * 10000, 100000)
    for _, _reply in zip(range(10), call):
        time.sleep(0.05)
    assert echo.rss_kib() - before < 32 * 1024
    call.cancel()


@pytest.mark.parametrize("how", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_by_the_client(channel, how):
    for message in (b"", b"y" * 5000, os.urandom(3 << 20)):
        assert unary(channel)(message, timeout=60, compression=how) == message


def test_a_small_message_that_becomes_a_large_one(echo, channel):
    with pytest.raises(grpc.RpcError) as e:
        unary(channel)(b"\0" * (64 << 20), timeout=60, compression=grpc.Compression.Gzip)
    assert e.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert unary(channel)(b"next", timeout=60) == b"next"


@pytest.fixture(scope="module")
def health(holtd):
    with open_channel(holtd.port) as c:
        yield health_pb2_grpc.HealthStub(c)


def test_health_check(health):
    for service in ("", "holt", "sandbox.v1.SandboxService"):
        reply = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=60)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_an_unknown_service(health):
    with pytest.raises(grpc.RpcError) as e:
        health.Check(health_pb2.HealthCheckRequest(service="no.such.Service"), timeout=60)
    assert e.value.code() == grpc.StatusCode.NOT_FOUND


def test_health_watch(health):
    call = health.Watch(health_pb2.HealthCheckRequest(service=""), timeout=60)
    assert next(iter(call)).status == health_pb2.HealthCheckResponse.SERVING
    call.cancel()


def test_health_watch_of_an_unknown_service(health):
    """The standard: SERVICE_UNKNOWN, and the stream stays open."""
    call = health.Watch(health_pb2.HealthCheckRequest(service="no.such.Service"), timeout=60)
    assert next(iter(call)).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    call.cancel()


def test_holtd_answers_unknown_services_by_unimplemented(holtd):
    with open_channel(holtd.port) as c:
        with pytest.raises(grpc.RpcError) as e:
            c.unary_unary("/no.such.Service/Method", raw, raw)(b"", timeout=60)
    assert e.value.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED)


def test_over_tls(tmp_path_factory, certificate, new_holtd):
    cert, key = certificate
    d = new_holtd(config=f"tls_cert: {cert}\ntls_key: {key}\n")
    with open(cert, "rb") as f:
        credentials = grpc.ssl_channel_credentials(f.read())
    with grpc.secure_channel(f"localhost:{d.port}", credentials, [("grpc.enable_http_proxy", 0)]) as c:
        reply = health_pb2_grpc.HealthStub(c).Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert reply.status == health_pb2.HealthCheckResponse.SERVING


def test_node_grpc_js(echo, holtd, node):
    report = json.loads(node("grpc_echo.js", f"127.0.0.1:{echo.port}", f"127.0.0.1:{holtd.port}",
                             f"{ROOT}/tests/integration/node/health.proto"))
    assert report["ok"] is True, report
