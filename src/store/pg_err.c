/* pg_err: turns PostgreSQL errors into ours. */
#include "store/pg.h"

#include <stdio.h>

/* libpq's messages have several lines; the first has the reason. */
static void first_line(const char *text, char *to, size_t size)
{
    const char *p = text ? text : "";
    size_t n = strcspn(p, "\n");

    (void)snprintf(to, size, "%.*s", (int)n, n > 0 ? p : "");
}

int pg_fail_lost(struct pg_conn *c, const char *why, struct err *e)
{
    char line[160];

    first_line(why, line, sizeof line);
    err_set(e, ERR_UNAVAILABLE, 0, "database '%s' cannot be reached: %s", c->db->server,
            line[0] ? line : "the connection was closed");
    return err_hint(
        e,
        "check that the PostgreSQL server runs and is reachable; holtd then continues by itself");
}

/* 57P01 to 57P05: it shuts down, has crashed, is starting, or closes idle connections. */
bool pg_is_end(const PGresult *r)
{
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

    return state && strncmp(state, "57P", 3) == 0;
}

struct meaning {
    const char *state; /* SQLSTATE or its class: PostgreSQL's appendix A */
    enum err_code code;
    const char *text; /* NULL: the server's message */
    const char *hint;
};

static const struct meaning meanings[] = {
    {"23", ERR_CONFLICT, NULL, ""},
    {"53100", ERR_FULL, "no space left at",
     "free space on the server's disk; holtd then continues by itself"},
    {"53", ERR_UNAVAILABLE, NULL, "see the server's log; holtd then continues by itself"},
    {"25006", ERR_UNAVAILABLE, "nobody may write at",
     "it is a standby or read-only: name the primary in `db`"},
    {"40", ERR_UNAVAILABLE, NULL, "try again"},
    {"55P03", ERR_UNAVAILABLE, NULL, "end the program that locks holt's tables"},
    {"42501", ERR_UNAVAILABLE, NULL,
     "the role needs CREATE on the database: GRANT CREATE ON DATABASE … TO …"},
    {"22021", ERR_INVALID, NULL, "texts must be valid UTF-8 without NUL"},
    {"22P05", ERR_INVALID, NULL, "texts must be valid UTF-8 without NUL"},
    {"54", ERR_TOO_LARGE, NULL, ""},
    {"58", ERR_UNAVAILABLE, NULL, "the server's disk or file system fails: see its log"},
    {"XX", ERR_UNAVAILABLE, NULL, "the database may be damaged: see the server's log"},
};

int pg_fail(struct pg_conn *c, const PGresult *r, const char *doing, struct err *e)
{
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *text = r ? PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (c->lost) {
        *e = c->why;
        return -1;
    }
    for (size_t i = 0; state && i < ARRAY_LEN(meanings); i++) {
        const struct meaning *m = &meanings[i];

        if (strncmp(state, m->state, strlen(m->state)) != 0)
            continue;
        if (m->code == ERR_CONFLICT || m->code == ERR_INVALID || m->code == ERR_TOO_LARGE)
            err_set(e, m->code, 0, "%s", text ? text : state);
        else
            err_set(e, m->code, 0, "%s '%s'%s%s", m->text ? m->text : "database", c->db->server,
                    m->text ? "" : ": ", m->text ? "" : text);
        return err_hint(e, "%s", m->hint);
    }
    return err_set(e, ERR_INTERNAL, 0, "%s: %s", doing, text ? text : PQerrorMessage(c->h));
}
