/* database: joins database settings with a key per part into one URL for our setting `db`. */
#include "conf/setting.h"

#include "base/enc.h"

#include <inttypes.h>

enum part { HOST, PORT, NAME, USER, PASSWORD, SSLMODE, PART_COUNT };
static const char *const parts[PART_COUNT] = {"host", "port",     "name",
                                              "user", "password", "sslmode"};

bool database_is_part(struct str key)
{
    if (!str_starts(key, STR("database.")))
        return false;
    for (size_t i = 0; i < PART_COUNT; i++)
        if (str_eq_c(str_skip(key, strlen("database.")), parts[i]))
            return true;
    return false;
}

/* Adds prefix and the part's value, percent-encoded; nothing if the section lacks it. */
static int add_part(const json_t *section, enum part p, const char *prefix, struct buf *to,
                    struct err *e)
{
    const json_t *v = json_object_get(section, parts[p]);
    AUTO(buf_done) struct buf text = {0};

    if (!v || json_is_null(v))
        return 0;
    if (json_is_string(v))
        buf_add(&text, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_printf(&text, "%" PRId64, (int64_t)json_integer_value(v));
    else
        return err_set(e, ERR_INVALID, 0, "'database.%s' must be a string or a whole number",
                       parts[p]);
    buf_add_c(to, prefix);
    enc_percent(to, buf_str(&text));
    return 0;
}

int database_url(const json_t *section, struct buf *to, struct err *e)
{
    if (!json_object_get(section, parts[HOST]) || json_object_get(section, "url"))
        return 0; /* DATABASE_URL's key has all of it */
    buf_add_c(to, "postgres://");
    if (add_part(section, USER, "", to, e) < 0 || add_part(section, PASSWORD, ":", to, e) < 0)
        return -1;
    if (json_object_get(section, parts[USER]))
        buf_add_char(to, '@');
    if (add_part(section, HOST, "", to, e) < 0 || add_part(section, PORT, ":", to, e) < 0 ||
        add_part(section, NAME, "/", to, e) < 0 ||
        add_part(section, SSLMODE, "?sslmode=", to, e) < 0)
        return -1;
    return 1;
}
