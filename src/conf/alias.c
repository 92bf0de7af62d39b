/* alias: names by which other systems set the same things. */
#include "conf/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

/* --- addresses --- */

int alias_port(struct str text, uint64_t last, uint64_t *ret, struct err *e)
{
    if (str_parse_u64(text, ret) == 0 && *ret >= 1 && *ret <= last)
        return 0;
    return err_set(e, ERR_INVALID, 0, "port '%.*s' is not a number from 1 to %" PRIu64,
                   (int)size_min(text.n, 20), text.p, last);
}

/* Go's form: ":8080" means every address of the host. */
static int from_go_addr(struct str value, struct buf *to, struct err *e)
{
    (void)e; /* the setting's own check validates the result */
    if (value.n && value.p[0] == ':')
        buf_add_c(to, "0.0.0.0");
    buf_add_str(to, value);
    return 0;
}

const struct setting_alias listen_alias[] = {
    {"API_HTTP_ADDR", from_go_addr, .adds = true, .optional = true},
    {"api.addr", from_go_addr, .adds = true, .optional = true},
    {"server.listen", from_go_addr, .adds = true, .optional = true},
    {NULL},
};

/* --- logging --- */

/* RUST_LOG is a list of directives: "info,holt=debug"; the one without a target is the level. */
static int from_rust_log(struct str value, struct buf *to, struct err *e)
{
    static const char *const levels[][2] = {
        {"off", "error"}, {"error", "error"}, {"warn", "warn"},   {"warning", "warn"},
        {"info", "info"}, {"debug", "debug"}, {"trace", "debug"},
    };
    struct str rest = value;

    while (rest.n > 0) {
        struct str directive = str_trim(str_cut(rest, ',', &rest));

        if (str_index(directive, '=') >= 0)
            continue;
        for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
            if (str_case_eq_c(directive, levels[i][0])) {
                buf_add_c(to, levels[i][1]);
                return 0;
            }
        }
        if (rest.n == 0 && str_index(value, ',') < 0 && str_index(value, '=') < 0)
            return err_set(
                e, ERR_INVALID, 0,
                "'%.*s' is not a log level; it must be off, error, warn, info, debug or trace",
                (int)size_min(value.n, 40), value.p);
    }
    buf_add_c(to, "info"); /* only targets were named: the rest keeps the default level */
    return 0;
}

static int from_log_format(struct str value, struct buf *to, struct err *e)
{
    static const char *const texts[] = {"pretty", "compact", "text", "full", "logfmt"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (str_case_eq_c(value, texts[i])) {
            buf_add_c(to, "logfmt");
            return 0;
        }
    }
    if (str_case_eq_c(value, "json")) {
        buf_add_c(to, "json");
        return 0;
    }
    return err_set(e, ERR_INVALID, 0,
                   "'%.*s' is not a log format; it must be logfmt, pretty, compact, text or json",
                   (int)size_min(value.n, 40), value.p);
}

const struct setting_alias log_level_alias[] = {
    {"RUST_LOG", from_rust_log},
    {"LOG_LEVEL", from_rust_log},
    {"logging.level", from_rust_log},
    {NULL},
};
const struct setting_alias log_format_alias[] = {
    {"LOG_FORMAT", from_log_format},
    {"logging.format", from_log_format},
    {NULL},
};

/* --- the rest --- */

/* Plain numbers are seconds in those systems and milliseconds here. */
int alias_seconds(struct str value, struct buf *to, struct err *e)
{
    uint64_t n;

    (void)e;
    buf_add_str(to, value);
    if (str_parse_u64(value, &n) == 0)
        buf_add_char(to, 's');
    return 0;
}

const struct setting_alias metrics_alias[] = {{"METRICS_ENABLED"}, {NULL}};
const struct setting_alias db_alias[] = {{"DATABASE_URL"}, {"database.url"}, {NULL}};
const struct setting_alias shutdown_alias[] = {
    {"API_SHUTDOWN_TIMEOUT_SEC", alias_seconds},
    {"api.shutdown_timeout", alias_seconds},
    {NULL},
};
