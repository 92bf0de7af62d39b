/* page: the login page of holtd. */
#include "api/page.h"

#include "base/enc.h"
#include "proto/digest.h"

/* The code is after '#': browsers do not send that part. */
static const char script[] =
    "const out = document.getElementById('state');\n"
    "const ask = (path, init) => fetch(path, init).then(async r => {\n"
    "  const body = await r.json().catch(() => ({}));\n"
    "  if (!r.ok) throw new Error(body.error ? body.error.message : 'status ' + r.status);\n"
    "  return body;\n"
    "});\n"
    "async function login() {\n"
    "  const code = new URLSearchParams(location.hash.slice(1)).get('login');\n"
    "  if (!code) return;\n"
    "  history.replaceState(null, '', location.pathname);\n"
    "  await ask('/holt/v1/login', {method: 'POST', body: JSON.stringify({code}),\n"
    "    headers: {'content-type': 'application/json'}});\n"
    "}\n"
    "async function show() {\n"
    "  await login();\n"
    "  const self = await ask('/holt/v1/tokens/self');\n"
    "  const info = await ask('/holt/v1/info');\n"
    "  out.textContent = 'Logged in as ' + self.role + '.\\n\\n' + JSON.stringify(info, null, 2);\n"
    "}\n"
    "show().catch(e => {\n"
    "  out.textContent = 'Not logged in: ' + e.message + '.\\n\\nGet a link: holt login';\n"
    "});\n";

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>holt</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n</head>\n<body>\n<h1>holt</h1>\n"
    "<pre id=\"state\" role=\"status\">One moment.</pre>\n"
    "<p><a href=\"/holt/v1/openapi.json\">The API</a></p>\n<script>";
static const char after[] = "</script>\n</body>\n</html>\n";

void page_send(struct request *r, const char *html, const char *code)
{
    AUTO(buf_done) struct buf page = {0}, policy = {0};
    unsigned char hash[SHA256_SIZE];
    struct http_header headers[5];

    buf_add_c(&page, html);
    buf_add_c(&page, code);
    buf_add_c(&page, after);
    sha256(str_of(code), hash);
    buf_add_c(&policy, "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action "
                       "'none'; frame-ancestors 'none'; script-src 'sha256-");
    enc_base64(&policy, hash, sizeof hash);
    buf_add_c(&policy, "'");
    headers[0] = (struct http_header){STR("content-type"), STR("text/html; charset=utf-8")};
    headers[1] = (struct http_header){STR("content-security-policy"), buf_str(&policy)};
    headers[2] = (struct http_header){STR("x-content-type-options"), STR("nosniff")};
    headers[3] = (struct http_header){STR("referrer-policy"), STR("no-referrer")};
    headers[4] = (struct http_header){STR("cache-control"), STR("no-cache")};
    r->status = 200;
    xchg_reply_with(r->x, 200, headers, ARRAY_LEN(headers), buf_str(&page));
}

static void page_run(struct request *r)
{
    page_send(r, head, script);
}

const struct route page_route = {
    .method = "GET",
    .path = "/",
    .name = "page",
    .perm = PERM_NONE,
    .handler = page_run,
};
