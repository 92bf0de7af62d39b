/* hosts: the hosts of virtual machines: entries of the setting `hosts` as text and as parts. */
#include "conf/setting.h"

#include "base/mem.h"

#include <inttypes.h>

/* An entry is NAME=URI or NAME=ADDRESS, then KEY=VALUE words.  In the settings file it is a mapping
 * with the same keys. */

#define HOST_NAME_LEN 40

enum part_type { PART_TEXT, PART_SIZE, PART_COUNT_OF };
struct part {
    const char *key;
    enum part_type type;
    size_t at;
};
struct parts { /* what the words say, before they are put together */
    struct conf_host *host;
    struct str user, port, keyfile;
};

/* clang-format off */
#define OF(member) offsetof(struct conf_host, member)
static const struct part host_parts[] = {
    {"network",    PART_TEXT,     OF(network)},
    {"pool_dir",   PART_TEXT,     OF(pool_dir)},
    {"ssh_config", PART_TEXT,     OF(ssh_config)},
    {"memory",     PART_SIZE,     OF(memory_bytes)},
    {"cpus",       PART_COUNT_OF, OF(cpus)},
    {"machines",   PART_COUNT_OF, OF(machines)},
};
/* clang-format on */

void conf_host_done(struct conf_host *h)
{
    mem_free(h->name);
    mem_free(h->uri);
    mem_free(h->network);
    mem_free(h->pool_dir);
    mem_free(h->ssh_config);
    *h = (struct conf_host){0};
}

static bool name_is_good(struct str name)
{
    bool good = name.n > 0 && name.n <= HOST_NAME_LEN;

    for (size_t i = 0; good && i < name.n; i++)
        good = (name.p[i] >= 'a' && name.p[i] <= 'z') || (name.p[i] >= '0' && name.p[i] <= '9') ||
               (i > 0 && name.p[i] == '-');
    return good;
}

static int put_part(struct conf_host *h, const struct part *p, struct str value, struct err *e)
{
    char *to = (char *)h + p->at;
    int64_t n = 0;

    if (p->type == PART_TEXT) {
        mem_free(*(char **)to);
        *(char **)to = str_dup(value);
        return 0;
    }
    if ((p->type == PART_SIZE ? str_parse_size(value, &n) : str_parse_i64(value, &n)) < 0 || n <= 0)
        return err_set(e, ERR_INVALID, 0, "'%s' is '" STR_FMT "'; it must be %s", p->key,
                       (int)size_min(value.n, 40), value.p,
                       p->type == PART_SIZE ? "a size like 64g" : "a number above 0");
    *(int64_t *)to = n;
    return 0;
}

static int take_word(struct parts *p, struct str word, struct err *e)
{
    struct str value, key = str_cut(word, '=', &value);

    if (value.n == 0)
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' must be KEY=VALUE",
                       (int)size_min(word.n, 60), word.p);
    if (str_eq_c(key, "user") || str_eq_c(key, "ssh_user"))
        p->user = value;
    else if (str_eq_c(key, "port") || str_eq_c(key, "ssh_port"))
        p->port = value;
    else if (str_eq_c(key, "keyfile"))
        p->keyfile = value;
    else {
        for (size_t i = 0; i < ARRAY_LEN(host_parts); i++)
            if (str_eq_c(key, host_parts[i].key))
                return put_part(p->host, &host_parts[i], value, e);
        (void)err_set(e, ERR_INVALID, 0, "a host has no '" STR_FMT "'", (int)size_min(key.n, 40),
                      key.p);
        return err_hint(e, "user, port, keyfile, network, pool_dir, ssh_config, memory, cpus or "
                           "machines");
    }
    return 0;
}

/* Everything that would let another machine pose as this host is refused, as is what would execute
 * a program of the entry's choice. */
static int check_uri(const char *uri, struct err *e)
{
    static const char *const schemes[] = {"qemu:///", "qemu+unix:///", "qemu+ssh://", "qemu+tcp://",
                                          "qemu+tls://"};
    static const char *const refused[] = {
        "no_verify=", "command=", "netcat=", "known_hosts_verify="};

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (strstr(uri, refused[i]))
            return err_set(e, ERR_INVALID, 0, "'%.100s': '%s' is not allowed", uri, refused[i]);
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncmp(uri, schemes[i], strlen(schemes[i])) == 0)
            return 0;
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' must be like qemu:///system, qemu+ssh://user@host/system or "
                   "qemu+tcp://host/system",
                   uri);
}

/* An address means its libvirtd over SSH. */
static int put_uri(struct parts *p, struct str where, struct err *e)
{
    AUTO(buf_done) struct buf uri = {0};
    bool is_uri = str_find(where, STR("://"));

    if (is_uri && (p->user.n > 0 || p->port.n > 0))
        return err_set(e, ERR_INVALID, 0,
                       "'user' and 'port' belong to an address; write them into "
                       "the URI");
    if (is_uri) {
        buf_add_str(&uri, where);
    } else {
        buf_add_c(&uri, "qemu+ssh://");
        if (p->user.n > 0)
            buf_printf(&uri, STR_FMT "@", STR_ARG(p->user));
        buf_add_str(&uri, where);
        if (p->port.n > 0)
            buf_printf(&uri, ":" STR_FMT, STR_ARG(p->port));
        buf_add_c(&uri, "/system");
    }
    if (p->keyfile.n > 0)
        buf_printf(&uri, "%ckeyfile=" STR_FMT, str_index(buf_str(&uri), '?') >= 0 ? '&' : '?',
                   STR_ARG(p->keyfile));
    p->host->uri = str_dup(buf_str(&uri));
    return check_uri(p->host->uri, e);
}

int conf_host_parse(const char *text, struct conf_host *ret, struct err *e)
{
    struct parts p = {.host = ret};
    struct str rest, where, first = str_cut(str_of(text), ' ', &rest);
    struct str name = str_cut(first, '=', &where);

    *ret = (struct conf_host){0};
    if (!name_is_good(name) || where.n == 0)
        return err_set(e, ERR_INVALID, 0,
                       "'%.80s' must begin with NAME=URI or NAME=ADDRESS; a name has a-z, 0-9 and "
                       "'-', at most %d",
                       text, HOST_NAME_LEN);
    ret->name = str_dup(name);
    while (rest.n > 0) {
        struct str word = str_cut(rest, ' ', &rest);

        if (word.n > 0 && take_word(&p, word, e) < 0) {
            conf_host_done(ret);
            return -1;
        }
    }
    if (put_uri(&p, where, e) < 0) {
        conf_host_done(ret);
        return -1;
    }
    return 0;
}

int conf_check_uri(const char *value, struct err *e)
{
    return check_uri(value, e);
}

/* A plain name was a member of this list once: host_names. */
bool conf_host_is_name(const char *text)
{
    return !strchr(text, '=');
}

int conf_host_check(const char *text, struct err *e)
{
    struct conf_host h;

    if (conf_host_is_name(text))
        return 0;
    if (conf_host_parse(text, &h, e) < 0)
        return -1;
    conf_host_done(&h);
    return 0;
}

/* ---- a mapping of the settings file ---- */

static bool member_text(const json_t *v, struct buf *to)
{
    if (json_is_string(v))
        buf_add(to, json_string_value(v), json_string_length(v));
    else if (json_is_integer(v))
        buf_printf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else
        return false;
    return !memchr(buf_data(to), ' ', buf_len(to));
}

static int add_member(struct buf *to, const char *key, const json_t *v, struct err *e)
{
    AUTO(buf_done) struct buf text = {0};

    if (!member_text(v, &text))
        return err_set(e, ERR_INVALID, 0,
                       "'%.40s' of a host must be a text without blanks, or a number", key);
    buf_add_str(to, buf_str(&text));
    return 0;
}

int conf_host_from_json(const json_t *mapping, struct buf *to, struct err *e)
{
    const json_t *name = json_object_get(mapping, "name"), *uri = json_object_get(mapping, "uri");
    const json_t *where = uri ? uri : json_object_get(mapping, "address");
    const char *key;
    json_t *v;

    if (!name || !where)
        return err_set(e, ERR_INVALID, 0, "a host needs 'name', and 'uri' or 'address'");
    if (add_member(to, "name", name, e) < 0)
        return -1;
    buf_add_char(to, '=');
    if (add_member(to, uri ? "uri" : "address", where, e) < 0)
        return -1;
    json_object_foreach((json_t *)(uintptr_t)mapping, key, v)
    {
        if (v == name || v == where)
            continue;
        buf_printf(to, " %s=", key);
        if (add_member(to, key, v, e) < 0)
            return -1;
    }
    return 0;
}
