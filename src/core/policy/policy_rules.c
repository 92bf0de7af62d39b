/* policy_rules: the rules of a policy as JSON: checks, and the lists that are shipped. */
#include "core/policy/policy_internal.h"

#include "proto/http.h"

#define TEXTS_MAX 256       /* of one list */
#define TEXT_MAX 1024       /* bytes of one entry */
#define PATHS_MAX 100       /* path rules of one policy: they fit a message with those of others */
#define PATH_BYTES_MAX 6144 /* all of them */
#define PATH_DEPTH_MAX 32
#define TIME_MAX_MS (365LL * 24 * 3600 * 1000)

const char *const policy_lists[POLICY_LIST_COUNT] = {
    [POLICY_COMMANDS_ALLOW] = "commands_allow",
    [POLICY_COMMANDS_DENY] = "commands_deny",
    [POLICY_COMMANDS_RESERVED] = "commands_reserved",
    [POLICY_WORDS_DENY] = "words_deny",
    [POLICY_PATHS_ALLOW] = "paths_allow",
    [POLICY_PATHS_DENY] = "paths_deny",
    [POLICY_WRITE_ALLOW] = "write_allow",
    [POLICY_WRITE_DENY] = "write_deny",
    [POLICY_AGENTS] = "agents",
};

static const struct {
    const char *name;
    size_t at;
    int64_t max;
} numbers[] = {
    {"timeout_ms", offsetof(struct policy_rules, timeout_ms), TIME_MAX_MS},
    {"timeout_max_ms", offsetof(struct policy_rules, timeout_max_ms), TIME_MAX_MS},
    {"output_bytes", offsetof(struct policy_rules, output_bytes), 1LL << 40},
};

/* --- checks --- */

static bool is_path_list(size_t list)
{
    return list >= POLICY_PATHS_ALLOW && list <= POLICY_WRITE_DENY;
}

/* Absolute and plain, so that a prefix means what it says. */
static int check_path(const char *list, struct str path, struct err *e)
{
    size_t depth = 0;

    for (size_t i = 0; i < path.n; i++)
        depth += path.p[i] == '/';
    if (str_eq_c(path, "/") || (path.p[0] == '/' && path.p[path.n - 1] != '/' &&
                                depth <= PATH_DEPTH_MAX && http_path_is_normal(path)))
        return 0;
    err_set(e, ERR_INVALID, 0, "field '%s': '%.*s' is not a plain path", list,
            (int)size_min(path.n, 100), path.p);
    return err_hint(e, "absolute, without '.', '..', '//' and a '/' at its end, at most %d deep",
                    PATH_DEPTH_MAX);
}

static int check_text(size_t list, struct str t, struct err *e)
{
    if (t.n == 0 || t.n > TEXT_MAX || memchr(t.p, '\0', t.n))
        return err_set(e, ERR_INVALID, 0,
                       "field '%s': an entry has 1 to %d bytes, without a NUL byte",
                       policy_lists[list], TEXT_MAX);
    if (is_path_list(list))
        return check_path(policy_lists[list], t, e);
    return 0;
}

static int read_list(const json_t *o, size_t list, struct arena *a, struct policy_texts *ret,
                     struct err *e)
{
    const json_t *v = json_object_get(o, policy_lists[list]);
    size_t n = json_array_size(v);

    *ret = (struct policy_texts){0};
    if (!v)
        return 0;
    if (!json_is_array(v) || n > TEXTS_MAX)
        return err_set(e, ERR_INVALID, 0, "field '%s' must be a list of at most %d strings",
                       policy_lists[list], TEXTS_MAX);
    ret->v = arena_zalloc(a, size_max(n, 1) * sizeof *ret->v);
    for (; ret->n < n; ret->n++) {
        const json_t *t = json_array_get(v, ret->n);

        if (!json_is_string(t))
            return err_set(e, ERR_INVALID, 0, "field '%s': entry %zu must be a string",
                           policy_lists[list], ret->n);
        ret->v[ret->n] = arena_str(a, str_make(json_string_value(t), json_string_length(t)));
        if (check_text(list, ret->v[ret->n], e) < 0)
            return -1;
    }
    return 0;
}

static int check_paths(const struct policy_rules *r, struct err *e)
{
    size_t n = 0, bytes = 0;

    for (size_t l = POLICY_PATHS_ALLOW; l <= POLICY_WRITE_DENY; l++) {
        n += r->list[l].n;
        for (size_t i = 0; i < r->list[l].n; i++)
            bytes += r->list[l].v[i].n;
    }
    if (n <= PATHS_MAX && bytes <= PATH_BYTES_MAX)
        return 0;
    return err_set(e, ERR_INVALID, 0, "%zu path rules of %zu bytes: at most %d of %d bytes", n,
                   bytes, PATHS_MAX, PATH_BYTES_MAX);
}

int policy_read_rules(const json_t *o, struct arena *a, struct policy_rules *ret, struct err *e)
{
    for (size_t l = 0; l < POLICY_LIST_COUNT; l++)
        if (read_list(o, l, a, &ret->list[l], e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const json_t *v = json_object_get(o, numbers[i].name);
        int64_t n = json_integer_value(v);

        if (v && (!json_is_integer(v) || n < 0 || n > numbers[i].max))
            return err_set(e, ERR_INVALID, 0, "field '%s': a whole number from 0 to %lld",
                           numbers[i].name, (long long)numbers[i].max);
        memcpy((char *)ret + numbers[i].at, &n, sizeof n);
    }
    if (ret->timeout_max_ms > 0 && ret->timeout_ms > ret->timeout_max_ms)
        return err_set(e, ERR_INVALID, 0, "field 'timeout_ms' is above 'timeout_max_ms'");
    return check_paths(ret, e);
}

void policy_put_rules(struct jw *w, const struct policy_rules *r)
{
    for (size_t l = 0; l < POLICY_LIST_COUNT; l++) {
        jw_key(w, policy_lists[l]);
        jw_array(w);
        for (size_t i = 0; i < r->list[l].n; i++)
            jw_str(w, r->list[l].v[i]);
        jw_array_end(w);
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        int64_t n;

        memcpy(&n, (const char *)r + numbers[i].at, sizeof n);
        jw_kint(w, numbers[i].name, n);
    }
}

/* --- what is shipped --- */

static void put_words(json_t *o, enum policy_list list, const char *words)
{
    json_t *v = json_array();

    for (struct str rest = str_of(words); rest.n > 0;) {
        struct str word = str_cut(rest, ' ', &rest);

        json_array_append_new(v, json_stringn(word.p, word.n));
    }
    json_object_set_new(o, policy_lists[list], v);
}

/* Paths of a home are those of root: a rule names a place, not a person. */
json_t *policy_defaults(void)
{
    json_t *o = json_object();

    put_words(o, POLICY_COMMANDS_ALLOW,
              "ls cat head tail grep find wc echo date whoami pwd env which git go make npm node "
              "python python3 docker kubectl curl wget ps top df du free uptime mkdir cp mv rm "
              "touch chmod tar gzip gunzip zip unzip sed awk sort uniq cut tr diff patch file "
              "stat");
    put_words(o, POLICY_COMMANDS_DENY,
              "sudo su passwd chown chgrp mount umount fdisk mkfs iptables firewall-cmd ufw "
              "systemctl service init reboot shutdown halt poweroff dd shred wipefs ssh scp sftp "
              "rsync nc netcat nmap tcpdump eval exec source");
    put_words(o, POLICY_COMMANDS_RESERVED, "eval exec source . bash sh zsh fish csh tcsh ksh");
    put_words(o, POLICY_WORDS_DENY, ".. | > < >> 2> &> && || ; ` $( ${ \n \r \\!");
    put_words(o, POLICY_PATHS_DENY, "/etc/passwd /etc/shadow /etc/sudoers /root/.ssh /root/.gnupg");
    json_object_set_new(o, "timeout_ms", json_integer(30 * 1000));
    json_object_set_new(o, "timeout_max_ms", json_integer(5 * 60 * 1000));
    json_object_set_new(o, "output_bytes", json_integer(1 << 20));
    return o;
}
