"""Traces: spans of requests and commands for a stand-in collector that speaks OTLP over HTTP."""
import http.server
import json
import re
import threading

import pytest

from daemon import native, wait_for

API = "/holt/v1"
TRACE, ABOVE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """Keeps the spans that it was sent, by id; refuses and stalls as it is told."""

    def __init__(self, port=0):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.stalled.wait(60)
                outer.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                if outer.refuse:
                    self.send_response(outer.refuse)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                for resource in json.loads(body)["resourceSpans"]:
                    outer.resources.append(resource["resource"])
                    for span in resource["scopeSpans"][0]["spans"]:
                        outer.times_seen[span["spanId"]] = outer.times_seen.get(span["spanId"], 0) + 1
                        outer.spans.append(span)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.requests, self.spans, self.resources, self.times_seen, self.refuse = [], [], [], {}, 0
        self.stalled = threading.Event()
        self.stalled.set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.stalled.set()
        self.server.shutdown()
        self.server.server_close()

    def find(self, name, trace=TRACE):
        return [s for s in self.spans if s["name"] == name and s["traceId"] == trace]

    def one(self, name, trace=TRACE):
        wait_for(lambda: self.find(name, trace))
        [span] = self.find(name, trace)
        return span


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


@pytest.fixture
def collector():
    c = Collector()
    yield c
    c.close()


@pytest.fixture
def holtd(collector, tmp_path):
    d = native(tmp_path, "--otlp-endpoint", f"http://127.0.0.1:{collector.port}", env={"OTEL_EXPORTER_OTLP_HEADERS": "x-key=a b", "OTEL_SERVICE_NAME": "den"})
    yield d
    d.clear()
    d.stop()


def traced(span=ABOVE, flags="01"):
    return {"traceparent": f"00-{TRACE}-{span}-{flags}"}


def test_a_trace_goes_from_the_client_into_the_sandbox_and_back(holtd, collector):
    box = holtd.ok("POST", f"{API}/sandboxes", {"name": "box", "relay": True})["id"]
    line = ('echo "$TRACEPARENT"; python3 -c \'import http.client, os, socket; c = http.client.HTTPConnection("x"); c.sock = socket.socket(socket.AF_UNIX); '
            'c.sock.connect("/run/holt.sock"); c.request("GET", "/holt/v1/sandboxes/BOX", headers={"Host": "localhost", "traceparent": os.environ["TRACEPARENT"]}); '
            "print(c.getresponse().status)'")
    reply = holtd.ok("POST", f"{API}/sandboxes/{box}/execs", {"command": line.replace("BOX", box)}, headers=traced())
    seen, status = reply["stdout"].split()
    assert status == "200", reply
    request = collector.one("exec.create")
    command = collector.one("exec")
    inside = collector.one("sandbox.get")
    assert request["parentSpanId"] == ABOVE and request["kind"] == 2
    assert command["parentSpanId"] == request["spanId"] and seen == f"00-{TRACE}-{command['spanId']}-01"
    assert inside["parentSpanId"] == command["spanId"], "and back"
    assert attributes(request)["http.response.status_code"] == "200" and attributes(request)["http.route"].endswith("/execs")
    assert attributes(command)["holt.exec"] == reply["id"] and attributes(command)["process.exit.code"] == "0"
    assert int(command["startTimeUnixNano"]) <= int(inside["startTimeUnixNano"]) <= int(inside["endTimeUnixNano"])
    path, headers = collector.requests[0]
    assert path == "/v1/traces" and headers["x-key"] == "a b" and headers["content-type"] == "application/json"
    assert {a["key"]: a["value"]["stringValue"] for a in collector.resources[0]["attributes"]}["service.name"] == "den"


def test_a_run_and_a_failed_command_are_spans_too(holtd, collector):
    reply = holtd.ok("POST", f"{API}/run", {"command": "echo $TRACEPARENT; exit 3"}, headers=traced())
    command = collector.one("exec")
    assert reply["exit_code"] == 3 and command["spanId"] in reply["stdout"] and command["status"] == {"code": 2}
    assert collector.one("run")["spanId"] == command["parentSpanId"]


def test_a_server_inside_gets_our_span(holtd, collector):
    holtd.ok("POST", f"{API}/sandboxes", {"name": "web"})
    serve = ("import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n def do_GET(s):\n  s.send_response(200); s.end_headers(); "
             "s.wfile.write(','.join(s.headers.get_all('traceparent') or []).encode())\nhttp.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()")
    holtd.ok("POST", f"{API}/sandboxes/web/execs", {"command": ["python3", "-c", serve], "background": True})
    wait_for(lambda: holtd.request("GET", f"{API}/sandboxes/web/ports/8000/")[0] == 200)
    status, text, _ = holtd.request("GET", f"{API}/sandboxes/web/ports/8000/", headers=traced())
    assert status == 200 and text == f"00-{TRACE}-{collector.one('port.proxy')['spanId']}-01"


@pytest.mark.parametrize("field", ["", "00-" + "0" * 32 + f"-{ABOVE}-01", f"00-{TRACE.upper()}-{ABOVE}-01", f"00-{TRACE}-{ABOVE}-01-more", f"ff-{TRACE}-{ABOVE}-01", "x" * 4000])
def test_a_wrong_field_begins_a_new_trace(holtd, collector, field):
    holtd.ok("GET", f"{API}/info", headers={"traceparent": field} if field else {})
    wait_for(lambda: [s for s in collector.spans if s["name"] == "server.info"])
    assert all(s["traceId"] != TRACE and "parentSpanId" not in s for s in collector.spans if s["name"] == "server.info")


def test_what_its_caller_does_not_record_is_not_recorded(holtd, collector):
    reply = holtd.ok("POST", f"{API}/run", {"command": "echo [$TRACEPARENT]"}, headers=traced(flags="00"))
    assert reply["stdout"] == "[]\n"
    holtd.ok("GET", f"{API}/info", headers=traced())
    collector.one("server.info")
    assert not collector.find("run")


def test_spans_wait_for_a_collector_that_is_away(tmp_path):
    first = Collector()
    port = first.port
    first.close()
    d = native(tmp_path, "--otlp-endpoint", f"http://127.0.0.1:{port}")
    try:
        d.ok("GET", f"{API}/info", headers=traced())
        wait_for(lambda: "the collector of traces takes nothing" in d.log())
        c = Collector(port)
        try:
            c.refuse = 503
            wait_for(lambda: c.requests)
            c.refuse = 0
            c.one("server.info")
            wait_for(lambda: "the collector of traces is back" in d.log())
            assert set(c.times_seen.values()) == {1}
        finally:
            c.close()
    finally:
        d.stop()


@pytest.mark.slow
def test_a_collector_that_hangs_holds_nothing_up(holtd, collector):
    collector.stalled.clear()
    for _ in range(3):  # the first batch is under way, the others fill the queue
        holtd.ok("GET", f"{API}/info")
    dropped = lambda: int(re.search(r"^holt_trace_spans_dropped_total (\d+)", holtd.request("GET", "/metrics")[1], re.M)[1])  # noqa: E731

    def flood():
        for _ in range(300):
            assert holtd.request("GET", "/healthz", token=None)[0] == 200
        return dropped() > 0
    wait_for(flood, 120)
    assert "spans were dropped" in holtd.log() or wait_for(lambda: "spans were dropped" in holtd.log())
    collector.stalled.set()
    wait_for(lambda: len(collector.spans) > 1000)


def test_without_an_endpoint_there_is_no_trace(tmp_path):
    d = native(tmp_path)
    try:
        reply = d.ok("POST", f"{API}/run", {"command": "echo [$TRACEPARENT]"}, headers=traced())
        assert reply["stdout"] == "[]\n" and "holt_trace" not in d.request("GET", "/metrics")[1]
    finally:
        d.clear()
        d.stop()


def test_log_lines_name_the_trace(collector, tmp_path):
    d = native(tmp_path, "--otlp-endpoint", f"http://127.0.0.1:{collector.port}", "--log-level", "debug", "--log-format", "json")
    try:
        d.ok("GET", f"{API}/info", headers=traced())
        span = collector.one("server.info")["spanId"]
        lines = [json.loads(line) for line in d.log().splitlines() if line.startswith("{")]
        assert [x["path"] for x in lines if span in x.get("traceparent", "")] == [f"{API}/info"]
    finally:
        d.stop()


@pytest.mark.parametrize("setting,value", [("--otlp-endpoint", "ftp://x"), ("--otlp-headers", "no value"), ("--otlp-ratio", "101")])
def test_wrong_settings_are_refused_by_name(tmp_path, setting, value):
    with pytest.raises(AssertionError) as e:
        native(tmp_path, setting, value).stop()
    assert setting.strip("-").replace("-", "_") in str(e.value)
