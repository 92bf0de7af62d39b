/* migrate: applies schema migrations in order. */
#include "store/migrate.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/log.h"
#include "proto/digest.h"

#define SUM_TEXT (2 * SHA256_SIZE + 1)

static char *migration_checksum(const struct migration *m, char to[SUM_TEXT])
{
    unsigned char sum[SHA256_SIZE];

    sha256(str_of(m->sql), sum);
    enc_hex(sum, sizeof sum, to);
    return to;
}

static int check_applied(int64_t version, struct str sum, struct err *e)
{
    char want[SUM_TEXT];

    if (version > (int64_t)migration_count) {
        err_set(e, ERR_UNSUPPORTED, 0,
                "the database has schema %lld, but this holt knows only up to %zu: a newer holt "
                "wrote it",
                (long long)version, migration_count);
        return err_hint(e, "start the newer holt, or restore a backup made before the upgrade");
    }
    if (version < 1 || !str_eq_c(sum, migration_checksum(&migrations[version - 1], want))) {
        err_set(e, ERR_UNSUPPORTED, 0,
                "schema %lld of the database was created by a different migration",
                (long long)version);
        return err_hint(e, "it belongs to another build: use that one, or another database");
    }
    return 0;
}

/* The newest version applied, 0: none. */
static int64_t applied_version(struct engine_conn *c, struct err *e)
{
    const struct store_engine *en = c->db->engine;
    struct store_rows *r = NULL;
    int64_t version = 0;
    int more;

    if (en->query(c, "SELECT version, checksum FROM migrations ORDER BY version", NO_PARAMS, &r,
                  e) < 0)
        return -1;
    while ((more = en->step(r, e)) > 0) {
        version = en->get_int(r, 0);
        if (check_applied(version, en->get_bytes(r, 1), e) < 0)
            break;
    }
    en->end(r);
    return more == 0 ? version : -1;
}

static int apply(struct engine_conn *c, const struct migration *m, struct err *e)
{
    const struct store_engine *en = c->db->engine;
    char sum[SUM_TEXT];

    if (en->begin(c, true, e) < 0)
        return -1;
    if (en->script(c, m->sql, e) < 0 ||
        en->run(c,
                "INSERT INTO migrations (version, name, checksum, applied_ms)"
                " VALUES (:version, :name, :checksum, :now)",
                PARAMS(P_INT("version", m->version), P_C("name", m->name),
                       P_C("checksum", migration_checksum(m, sum)), P_INT("now", clock_wall_ms())),
                e) < 0) {
        en->rollback(c);
        return -1;
    }
    return en->commit(c, e) == 0 ? 0 : -1;
}

int migrate(struct engine_conn *c, struct err *e)
{
    int64_t from;

    if (c->db->engine->script(c,
                              "CREATE TABLE IF NOT EXISTS migrations (version BIGINT PRIMARY KEY,"
                              " name TEXT NOT NULL, checksum TEXT NOT NULL,"
                              " applied_ms BIGINT NOT NULL);",
                              e) < 0)
        return -1;
    from = applied_version(c, e);
    if (from < 0)
        return -1;
    for (size_t i = (size_t)from; i < migration_count; i++) {
        if (apply(c, &migrations[i], e) < 0)
            return err_wrap(e, "migration %lld (%s)", (long long)migrations[i].version,
                            migrations[i].name);
        log_info("database migrated", LOG_N("version", migrations[i].version),
                 LOG_C("name", migrations[i].name));
    }
    return 0;
}
