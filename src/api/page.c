/* page: sends a small page of one script. */
#include "api/page.h"

#include "base/enc.h"
#include "proto/digest.h"

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
