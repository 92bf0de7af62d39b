/* send_file: streams a file into a reply. */
#include "api/share/send_file.h"

#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE (64 * 1024)

struct sending { /* in the exchange's arena */
    struct request *r;
    int fd;
    int64_t offset, size;
    bool over;
};

const char *file_media_type(struct str name)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {".txt", "text/plain"},        {".md", "text/markdown"},    {".log", "text/plain"},
        {".json", "application/json"}, {".html", "text/html"},      {".css", "text/css"},
        {".patch", "text/x-diff"},     {".diff", "text/x-diff"},    {".csv", "text/csv"},
        {".xml", "application/xml"},   {".yaml", "text/yaml"},      {".yml", "text/yaml"},
        {".png", "image/png"},         {".jpg", "image/jpeg"},      {".svg", "image/svg+xml"},
        {".pdf", "application/pdf"},   {".gz", "application/gzip"}, {".zip", "application/zip"},
        {".tar", "application/x-tar"}, {".js", "text/javascript"},  {".ts", "text/typescript"},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (str_ends(name, str_of(types[i].end)))
            return types[i].type;
    return "application/octet-stream";
}

/* What was promised by content-length and cannot be read is a cut connection. */
static void send_pieces(struct xchg *x)
{
    struct sending *s = xchg_arg(x);
    char piece[PIECE];

    while (!s->over && s->offset < s->size) {
        ssize_t n =
            pread(s->fd, piece, size_min(sizeof piece, (size_t)(s->size - s->offset)), s->offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            s->over = true;
            xchg_abort(x);
            return;
        }
        s->offset += n;
        if (xchg_write(x, piece, (size_t)n))
            return;
    }
    if (s->over)
        return;
    s->over = true;
    xchg_end(x, NULL, 0);
}

static void on_closed(struct xchg *x, bool done)
{
    struct sending *s = xchg_arg(x);

    s->over = true;
    fd_close(s->fd);
    request_end(s->r, done);
}

/* Only letters that need no quotes: the name comes from inside. */
static struct str disposition(struct request *r, struct str name)
{
    char *text;

    while (str_index(name, '/') >= 0)
        (void)str_cut(name, '/', &name);
    text = arena_printf(xchg_arena(r->x), "attachment; filename=\"" STR_FMT "\"", STR_ARG(name));
    for (char *c = text + strlen("attachment; filename=\""); *c; c++)
        if ((*c == '"' && c[1] != '\0') || *c == '\\' || *c < ' ' || *c > '~')
            *c = '_';
    return str_of(text);
}

void send_file(struct request *r, int fd, struct str name)
{
    static const struct xchg_ops ops = {.drained = send_pieces, .closed = on_closed};
    struct sending *s = arena_zalloc(xchg_arena(r->x), sizeof *s);
    struct stat st = {0};
    struct http_header h[5];

    (void)fstat(fd, &st);
    *s = (struct sending){.r = r, .fd = fd, .size = st.st_size};
    h[0] = (struct http_header){STR("content-type"), str_of(file_media_type(name))};
    h[1] = (struct http_header){
        STR("content-length"),
        str_of(arena_printf(xchg_arena(r->x), "%" PRId64, (int64_t)st.st_size))};
    h[2] = (struct http_header){STR("content-disposition"), disposition(r, name)};
    h[3] = (struct http_header){STR("x-content-type-options"), STR("nosniff")};
    h[4] = (struct http_header){STR("cache-control"), STR("no-store")};
    r->status = 200;
    xchg_handle(r->x, &ops, s);
    xchg_head(r->x, 200, h, ARRAY_LEN(h));
    if (str_eq_c(xchg_req(r->x)->method, "HEAD")) {
        s->over = true;
        xchg_end(r->x, NULL, 0);
    } else {
        send_pieces(r->x);
    }
}
