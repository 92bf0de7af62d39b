"""Login of people by OpenID Connect, with a small issuer of our own: honest, and hostile in every way that a client has to refuse."""
import base64
import hashlib
import http.client
import http.server
import json
import subprocess
import threading
import time
import urllib.parse

import pytest

from daemon import Holtd

API = "/holt/v1"
CLIENT, SECRET = "holt:dash", "s3cret/+%"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """An RSA or P-256 key; openssl signs."""

    def __init__(self, path, kind, kid):
        self.path, self.kind, self.kid = str(path), kind, kid
        options = ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"] if kind == "RS256" else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        subprocess.run(["openssl", "genpkey", "-algorithm", *options, "-out", self.path], check=True, capture_output=True)
        der = subprocess.run(["openssl", "pkey", "-in", self.path, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        if kind == "RS256":
            text = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
            self.jwk = {"kty": "RSA", "n": b64(bytes.fromhex(text.strip().split("=")[1])), "e": "AQAB", "kid": kid, "use": "sig", "alg": "RS256"}
        else:
            self.jwk = {"kty": "EC", "crv": "P-256", "x": b64(der[-64:-32]), "y": b64(der[-32:]), "kid": kid, "use": "sig"}
        self.public_der = der

    def sign(self, text):
        made = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text, check=True, capture_output=True).stdout
        if self.kind == "RS256":
            return made
        at, numbers = 2, []  # SEQUENCE of two INTEGERs
        for _ in range(2):
            n = made[at + 1]
            numbers.append(int.from_bytes(made[at + 2:at + 2 + n], "big").to_bytes(32, "big"))
            at += 2 + n
        return b"".join(numbers)


class Issuer:
    def __init__(self, directory):
        self.keys = {k: Key(directory / f"{k}.pem", k, f"key-{k}") for k in ("RS256", "ES256")}
        self.other = Key(directory / "other.pem", "RS256", "key-RS256")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def reply(self, value, status=200):
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                outer.seen.append(self.path)
                if self.path == "/.well-known/openid-configuration":
                    self.reply({"issuer": outer.says or outer.url, "authorization_endpoint": f"{outer.url}/authorize?tenant=1", "token_endpoint": f"{outer.url}/token",
                                "jwks_uri": outer.jwks_uri or f"{outer.url}/jwks"})
                else:
                    self.reply({"keys": outer.published()})

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
                basic = base64.b64decode(self.headers["authorization"].split()[1]).decode()
                status, value = outer.token(form, basic)
                self.reply(value, status)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.reset()

    def reset(self):
        self.says = self.jwks_uri = None
        self.alg, self.claims, self.head, self.codes, self.seen = "RS256", {}, {}, {}, []
        self.sign = None    # a function of the signed text, instead of the key
        self.reply = None   # a whole reply of the token endpoint
        self.hidden = set()

    def published(self):
        return [k.jwk for n, k in self.keys.items() if n not in self.hidden]

    def token(self, form, basic):
        want = self.codes.pop(form.get("code"), None)  # a code works once
        user, password = (urllib.parse.unquote(p) for p in basic.split(":"))
        challenge = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if not want or (user, password) != (CLIENT, SECRET) or challenge != want["code_challenge"] or form["redirect_uri"] != want["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return self.reply or (200, {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(want["nonce"])})

    def id_token(self, nonce):
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "1234", "nonce": nonce, "iat": now, "exp": now + 300, "preferred_username": "anna",
                  "groups": ["devs", "people"], **self.claims}
        claims = {k: v for k, v in claims.items() if v is not None}
        key = self.keys.get(self.alg)
        head = {"alg": self.alg, "kid": key.kid if key else "key-RS256", **self.head}
        head = {k: v for k, v in head.items() if v is not None}
        text = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
        signature = self.sign(text.encode()) if self.sign else key.sign(text.encode())
        return f"{text}.{b64(signature)}"

    def authorize(self, location):
        """What the person's browser does there: the issuer's answer to the redirect."""
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
        code = b64(hashlib.sha256(json.dumps(query).encode()).digest())
        self.codes[code] = query
        return query, code


class Browser:
    def __init__(self, d):
        self.d, self.cookies = d, {}

    def get(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.d.port, timeout=30)
        c.request("GET", path, headers={"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items())} if self.cookies else {})
        r = c.getresponse()
        body = r.read()
        for name, value in r.getheaders():
            if name.lower() == "set-cookie":
                pair, *self.flags = [p.strip() for p in value.split(";")]
                k, v = pair.split("=", 1)
                if "Max-Age=0" in self.flags:
                    self.cookies.pop(k, None)
                else:
                    self.cookies[k] = v
        c.close()
        return r.status, r.getheader("location"), body.decode()

    def begin(self):
        status, location, body = self.get(f"{API}/login/oidc")
        assert status == 303, body
        return location

    def back(self, **query):
        return self.get(f"{API}/login/oidc/callback?{urllib.parse.urlencode(query)}")

    def log_in(self, issuer, **more):
        query, code = issuer.authorize(self.begin())
        return self.back(code=code, state=query["state"], session_state="opaque", **more)

    def self(self):
        status, _, body = self.get(f"{API}/tokens/self")
        return json.loads(body) if status == 200 else None


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    i = Issuer(tmp_path_factory.mktemp("issuer"))
    yield i
    i.server.shutdown()


@pytest.fixture(scope="module")
def holtd(issuer, tmp_path_factory):
    d = Holtd(tmp_path_factory.mktemp("oidc"), env={"HOLT_OIDC_ISSUER": issuer.url, "HOLT_OIDC_CLIENT_ID": CLIENT, "HOLT_OIDC_CLIENT_SECRET": SECRET,
                                                    "HOLT_OIDC_ROLES": "admins=admin,devs=operator,watchers=observer", "HOLT_LOGIN_FAILURES": "1000"})
    yield d
    d.stop()


@pytest.fixture
def browser(holtd, issuer):
    issuer.reset()
    return Browser(holtd)


def test_a_person_logs_in(holtd, issuer, browser):
    location = browser.begin()
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
    assert location.startswith(f"{issuer.url}/authorize?tenant=1&response_type=code&") and query["scope"] == "openid profile email"
    assert query["code_challenge_method"] == "S256" and query["redirect_uri"] == f"{holtd.url}{API}/login/oidc/callback"
    assert {"HttpOnly", "SameSite=Lax"} <= set(browser.flags)
    assert browser.cookies["holt_oidc"] not in location, "what the browser keeps is not sent there"
    assert browser.log_in(issuer)[:2] == (303, "/")
    assert set(browser.cookies) == {"holt_session"}
    me = browser.self()
    assert (me["role"], me["person"], me["tenant"]) == ("operator", "anna", None)
    [session] = [t for t in holtd.ok("GET", f"{API}/tokens")["tokens"] if t["id"] == me["id"]]
    assert session["person"] == "anna" and session["expires_at"]
    holtd.ok("DELETE", f"{API}/tokens/{me['id']}")
    assert browser.self() is None, "revoked like any token"


def test_es256_roles_and_a_key_that_is_new(holtd, issuer, browser):
    issuer.alg = "ES256"
    issuer.hidden = {"ES256"}
    browser.log_in(issuer)  # the set without that key is now known
    issuer.hidden = set()
    issuer.claims = {"groups": "admins", "aud": [CLIENT, "other"], "azp": CLIENT}
    assert browser.log_in(issuer)[:2] == (303, "/"), "the set is fetched again"
    assert browser.self()["role"] == "admin"


NOW = int(time.time())
REFUSED = {
    "wrong nonce": ({"claims": {"nonce": "x" * 43}}, "another login"),
    "no nonce": ({"claims": {"nonce": None}}, "another login"),
    "alg none": ({"alg": "none", "sign": lambda text: b""}, "RS256 or ES256"),
    "unsigned": ({"sign": lambda text: b""}, "signature"),
    "the public key as a secret": ({"alg": "HS256", "sign": lambda text: hashlib.sha256(text).digest()}, "RS256 or ES256"),
    "another key of the same name": ({"sign": "other"}, "signature"),
    "another alg for that key": ({"head": {"alg": "ES256"}}, "key that the issuer does not have"),
    "expired": ({"claims": {"exp": NOW - 100}}, "expired"),
    "no exp": ({"claims": {"exp": None}}, "expired"),
    "from the future": ({"claims": {"iat": NOW + 10000}}, "future"),
    "not yet": ({"claims": {"nbf": NOW + 10000}}, "not valid yet"),
    "wrong aud": ({"claims": {"aud": "other"}}, "another client"),
    "no aud": ({"claims": {"aud": None}}, "another client"),
    "two auds, no azp": ({"claims": {"aud": [CLIENT, "other"]}}, "another client"),
    "azp of another": ({"claims": {"azp": "other"}}, "another client"),
    "another issuer": ({"claims": {"iss": "https://evil.example.org"}}, "another issuer"),
    "nobody": ({"claims": {"sub": None}}, "nobody"),
    "an extension": ({"head": {"crit": ["x"]}}, "extension"),
    "no role": ({"claims": {"groups": ["others"]}}, "no role here"),
    "no person": ({"claims": {"preferred_username": None}}, "no name of a person"),
    "a person that is no name": ({"claims": {"preferred_username": "a b\n"}}, "no name of a person"),
    "no token": ({"reply": (200, {"access_token": "x"})}, "no ID token"),
    "a reply that is no JSON": ({"reply": (200, b"<html>")}, "refused"),
    "a list": ({"reply": (200, [1])}, "refused"),
    "an endless reply": ({"reply": (200, {"x": "y" * 600000})}, ""),
    "a refusal": ({"reply": (500, {})}, "status 500"),
    "half a token": ({"reply": (200, {"id_token": "e30.e30"})}, "RS256"),
    "no token at all": ({"reply": (200, {"id_token": "...."})}, "not a signed token"),
    "a very long one": ({"reply": (200, {"id_token": "e30." + "A" * 20000 + ".x"})}, "not a signed token"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_answer_is_refused(holtd, issuer, browser, case):
    how, why = REFUSED[case]
    for name, value in how.items():
        setattr(issuer, name, issuer.other.sign if value == "other" else value)
    status, _, body = browser.log_in(issuer)
    message = json.loads(body)["error"]["message"]
    assert 400 <= status < 600 and why in message, (status, body)
    assert "holt_session" not in browser.cookies and browser.self() is None
    issuer.reset()
    assert browser.log_in(issuer)[0] == 303, "and the next one works"


def test_state_belongs_to_the_browser_that_began(holtd, issuer, browser):
    query, code = issuer.authorize(browser.begin())
    victim = Browser(holtd)
    assert victim.back(code=code, state=query["state"])[0] == 401, "without the cookie"
    victim.begin()
    assert victim.back(code=code, state=query["state"])[0] == 401, "with another login's cookie"
    assert browser.back(code=code, state="x" * 43)[0] == 401
    assert browser.back(code=code)[0] == 401
    assert browser.back(code=code, state=query["state"], iss="https://evil.example.org")[0] == 401, "mixed up"
    assert browser.back(error="access_denied", state=query["state"])[0] == 401
    assert issuer.codes, "none of these reached the issuer"
    assert browser.back(code=code, state=query["state"], iss=issuer.url)[0] == 303
    again = Browser(holtd)
    again.cookies = {"holt_oidc": "1." + "x" * 43}
    assert again.back(code=code, state=query["state"])[0] == 401, "a cookie of long ago"


def test_the_verifier_is_needed(holtd, issuer, browser):
    query, code = issuer.authorize(browser.begin())
    issuer.codes[code] = {**query, "code_challenge": b64(hashlib.sha256(b"another").digest())}
    assert browser.back(code=code, state=query["state"])[0] == 401


def test_an_issuer_that_calls_itself_another(issuer, tmp_path):
    issuer.reset()
    issuer.says = "https://accounts.example.org"
    d = Holtd(tmp_path, env={"HOLT_OIDC_ISSUER": issuer.url, "HOLT_OIDC_CLIENT_ID": CLIENT, "HOLT_OIDC_CLIENT_SECRET": SECRET, "HOLT_OIDC_ROLES": "*=observer"})
    try:
        status, _, body = Browser(d).get(f"{API}/login/oidc")
        assert status == 401 and "accounts.example.org" in body
        issuer.says, issuer.jwks_uri = None, "http://keys.example.org/jwks"
        browser = Browser(d)
        query, code = issuer.authorize(browser.begin())
        assert browser.back(code=code, state=query["state"])[0] == 403, "keys over plain http from elsewhere"
    finally:
        d.stop()


def test_off_by_default(new_holtd):
    d = new_holtd()
    for path in ("", "/callback?code=x&state=y"):
        status, _, body = Browser(d).get(f"{API}/login/oidc{path}")
        assert status == 409 and "not set up" in body


def test_a_person_who_logged_in_answers_by_name(holtd, issuer, browser):
    """The names of people are what the two-person rule counts: two sessions of one person are one."""
    issuer.claims = {"preferred_username": "bert"}
    assert browser.log_in(issuer)[0] == 303
    first = browser.self()
    second = Browser(holtd)
    assert second.log_in(issuer)[0] == 303
    assert first["person"] == second.self()["person"] == "bert" and first["id"] != second.self()["id"]
