/* pg_lib: libpq, loaded when a PostgreSQL database is opened. */
#include "store/pg.h"

#include <dlfcn.h>

/* libpq brings 17 more libraries and 3 MiB of memory, which a holtd with SQLite does without.  The
 * functions here have libpq's names and prototypes and pass each call on; a name that is missing in
 * this file is an error of the linker. */

#define LIBRARY "libpq.so.5"

/* clang-format off */
#define FUNCTIONS(X) \
    X(int, PQbackendPID, (const PGconn *c), (c)) \
    X(char *, PQcmdStatus, (PGresult *r), (r)) \
    X(char *, PQcmdTuples, (PGresult *r), (r)) \
    X(PGconn *, PQconnectdbParams, (const char *const *k, const char *const *v, int expand), (k, v, expand)) \
    X(PQconninfoOption *, PQconninfoParse, (const char *text, char **why), (text, why)) \
    X(int, PQconsumeInput, (PGconn *c), (c)) \
    X(int, PQenterPipelineMode, (PGconn *c), (c)) \
    X(char *, PQerrorMessage, (const PGconn *c), (c)) \
    X(int, PQexitPipelineMode, (PGconn *c), (c)) \
    X(int, PQflush, (PGconn *c), (c)) \
    X(Oid, PQftype, (const PGresult *r, int column), (r, column)) \
    X(int, PQgetisnull, (const PGresult *r, int row, int column), (r, row, column)) \
    X(int, PQgetlength, (const PGresult *r, int row, int column), (r, row, column)) \
    X(PGresult *, PQgetResult, (PGconn *c), (c)) \
    X(char *, PQgetvalue, (const PGresult *r, int row, int column), (r, row, column)) \
    X(int, PQisBusy, (PGconn *c), (c)) \
    X(int, PQnfields, (const PGresult *r), (r)) \
    X(int, PQntuples, (const PGresult *r), (r)) \
    X(const char *, PQparameterStatus, (const PGconn *c, const char *name), (c, name)) \
    X(PGPing, PQpingParams, (const char *const *k, const char *const *v, int expand), (k, v, expand)) \
    X(int, PQpipelineSync, (PGconn *c), (c)) \
    X(char *, PQresultErrorField, (const PGresult *r, int field), (r, field)) \
    X(char *, PQresultErrorMessage, (const PGresult *r), (r)) \
    X(ExecStatusType, PQresultStatus, (const PGresult *r), (r)) \
    X(int, PQsendPrepare, (PGconn *c, const char *name, const char *sql, int n, const Oid *types), (c, name, sql, n, types)) \
    X(int, PQsendQuery, (PGconn *c, const char *sql), (c, sql)) \
    X(int, PQsendQueryParams, (PGconn *c, const char *sql, int n, const Oid *types, const char *const *values, \
                               const int *lengths, const int *formats, int result), \
      (c, sql, n, types, values, lengths, formats, result)) \
    X(int, PQsendQueryPrepared, (PGconn *c, const char *name, int n, const char *const *values, const int *lengths, \
                                 const int *formats, int result), \
      (c, name, n, values, lengths, formats, result)) \
    X(int, PQserverVersion, (const PGconn *c), (c)) \
    X(PQnoticeProcessor, PQsetNoticeProcessor, (PGconn *c, PQnoticeProcessor fn, void *arg), (c, fn, arg)) \
    X(int, PQsetnonblocking, (PGconn *c, int on), (c, on)) \
    X(int, PQsocket, (const PGconn *c), (c)) \
    X(ConnStatusType, PQstatus, (const PGconn *c), (c)) \
    X(PGTransactionStatusType, PQtransactionStatus, (const PGconn *c), (c))
#define RETURNS_NOTHING(X) \
    X(PQclear, (PGresult *r), (r)) \
    X(PQconninfoFree, (PQconninfoOption *o), (o)) \
    X(PQfinish, (PGconn *c), (c))

#define MEMBER(ret, name, params, args) __typeof__(name) *name;
#define MEMBER_V(name, params, args) __typeof__(name) *name;
#define ROW(ret, name, params, args) {#name, offsetof(struct library, name)},
#define ROW_V(name, params, args) {#name, offsetof(struct library, name)},
#define PASS(ret, name, params, args) ret name params { return library.name args; }
#define PASS_V(name, params, args) void name params { library.name args; }

static struct library { FUNCTIONS(MEMBER) RETURNS_NOTHING(MEMBER_V) } library;

static const struct {
    const char *name;
    size_t at;
} rows[] = {FUNCTIONS(ROW) RETURNS_NOTHING(ROW_V)};

FUNCTIONS(PASS)
RETURNS_NOTHING(PASS_V)
/* clang-format on */

int pg_lib_load(struct err *e)
{
    static void *loaded; /* never unloaded: GnuTLS, which it uses, cannot be */
    void *h = loaded ? loaded : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!h) {
        err_set(e, ERR_UNAVAILABLE, 0, "load PostgreSQL's client library: %.120s", dlerror());
        return err_hint(e, "install it (Debian: apt install libpq5)");
    }
    for (size_t i = 0; !loaded && i < ARRAY_LEN(rows); i++) {
        void *fn = dlsym(h, rows[i].name);

        if (!fn) {
            (void)dlclose(h);
            err_set(e, ERR_UNSUPPORTED, 0, LIBRARY " has no %s: it is too old", rows[i].name);
            return err_hint(e, "install PostgreSQL's client library of version 14 or later");
        }
        memcpy((char *)&library + rows[i].at, &fn, sizeof fn);
    }
    loaded = h;
    return 0;
}
