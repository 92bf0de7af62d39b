/* board_file: the files of a project and their versions. */
#include "core/team/board_file.h"

#include "core/team/board_internal.h"

#define NAME_MAX_BYTES 255

/* --- names --- */

static bool part_is_good(struct str part)
{
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i], lower = (char)(c | 0x20);

        if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && c != '-' && c != '_' &&
            c != '.')
            return false;
    }
    return part.n > 0 && !str_eq_c(part, ".") && !str_eq_c(part, "..");
}

int file_check_name(struct str name, struct err *e)
{
    struct str left = name;
    bool good = name.n > 0 && name.n <= NAME_MAX_BYTES && name.p[name.n - 1] != '/' &&
                !memmem(name.p, name.n, "..", 2);

    while (good && left.n > 0)
        good = part_is_good(str_cut(left, '/', &left));
    if (good)
        return 0;
    err_set(e, ERR_INVALID, 0, "Invalid filename");
    return err_hint(e, "a relative path of letters, digits, '-', '_' and '.', at most %d bytes",
                    NAME_MAX_BYTES);
}

/* --- rows --- */

#define FILE_SELECT                                                                                \
    "SELECT project, name, version, hash, size, uploader, created_ms FROM project_files f "

static void read_file(const struct team *t, const struct store_rows *r, void *to)
{
    *(struct board_file *)to = (struct board_file){
        .project = team_column(t, r, 0),
        .name = team_column(t, r, 1),
        .version = rows_int(r, 2),
        .hash = team_column(t, r, 3),
        .size = rows_int(r, 4),
        .uploader = team_column(t, r, 5),
        .created_ms = rows_int(r, 6),
    };
}

static int read_files(struct team *t, const char *sql, const struct store_param *p, size_t n,
                      struct board_file_list *ret, struct err *e)
{
    struct team_rows l = {.size = sizeof *ret->v, .read = read_file};
    int r = team_read(t, sql, p, n, &l, e);

    *ret = (struct board_file_list){l.v, l.n};
    return r;
}

#define IS_NEWEST                                                                                  \
    "version = (SELECT MAX(version) FROM project_files g WHERE g.project = f.project AND "         \
    "g.name = f.name) "

int file_need(struct team *t, struct str project, struct str name, int64_t version,
              struct board_file *ret, struct err *e)
{
    struct board_file_list found;
    struct project p;

    if (project_need(t, project, &p, e) < 0 ||
        read_files(
            t,
            FILE_SELECT "WHERE project = :project AND name = :name AND "
                        "(version = :version OR (:version = 0 AND " IS_NEWEST "))",
            PARAMS(P_TEXT("project", project), P_TEXT("name", name), P_INT("version", version)),
            &found, e) < 0)
        return -1;
    if (found.n == 0) {
        (void)team_missing(t, "file", name, e);
        return version > 0 ? err_wrap(e, "version %lld", (long long)version) : -1;
    }
    *ret = found.v[0];
    return 0;
}

int file_all(struct team *t, struct str project, struct str name, struct board_file_list *ret,
             struct err *e)
{
    struct project p;

    if (project_need(t, project, &p, e) < 0)
        return -1;
    if (name.n > 0)
        return read_files(t,
                          FILE_SELECT "WHERE project = :project AND name = :name "
                                      "ORDER BY version DESC LIMIT :limit",
                          PARAMS(P_TEXT("project", project), P_TEXT("name", name),
                                 P_INT("limit", t->conf.objects_max)),
                          ret, e);
    return read_files(
        t, FILE_SELECT "WHERE project = :project AND " IS_NEWEST "ORDER BY name LIMIT :limit",
        PARAMS(P_TEXT("project", project), P_INT("limit", t->conf.objects_max)), ret, e);
}

static void file_event(struct team *t, const char *type, const struct board_file *f)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kstr(&w, "project", f->project);
    jw_kstr(&w, "name", f->name);
    jw_kint(&w, "version", f->version);
    jw_kstr(&w, "checksum", f->hash);
    jw_kint(&w, "size", f->size);
    jw_kstr(&w, "uploader", f->uploader);
    jw_ktime(&w, "created_at", f->created_ms);
    jw_object_end(&w);
    team_event(t, type, "project", f->project, &data);
}

/* --- removing rows --- */

/* Reports the blobs that no row names any more; the rows are already deleted. */
static int tell_unused(struct team *t, const struct board_file_list *gone, struct err *e)
{
    for (size_t i = 0; i < gone->n; i++) {
        int64_t left;

        if (team_number(t, "SELECT COUNT(*) FROM project_files WHERE hash = :hash",
                        PARAMS(P_TEXT("hash", gone->v[i].hash)), &left, e) < 0)
            return -1;
        if (left > 0)
            continue;
        t->unused = team_grow(t->arena, t->unused, t->unused_count, sizeof *t->unused);
        t->unused[t->unused_count++] = gone->v[i].hash;
    }
    return 0;
}

/* Deletes the files of a project; with a name, only that file; up to a version. */
static int drop_files(struct team *t, struct str project, struct str name, int64_t up_to,
                      struct err *e)
{
    struct board_file_list gone;

#define DROPPED "WHERE project = :project AND (:name = '' OR name = :name) AND version <= :up_to"
    if (read_files(t, FILE_SELECT DROPPED,
                   PARAMS(P_TEXT("project", project), P_TEXT("name", name), P_INT("up_to", up_to)),
                   &gone, e) < 0)
        return -1;
    if (gone.n > 0 &&
        tx_run(t->tx, "DELETE FROM project_files " DROPPED,
               PARAMS(P_TEXT("project", project), P_TEXT("name", name), P_INT("up_to", up_to)),
               e) < 0)
        return -1;
    return tell_unused(t, &gone, e);
}

int board_drop_files(struct team *t, struct str project, struct err *e)
{
    return drop_files(t, project, STR(""), INT64_MAX, e);
}

/* People may put files into any project, agents only where they are members; joining is an
 * event. */
static int check_member(struct team *t, struct str project, struct err *e)
{
    int64_t is;

    if (team_is_person(t))
        return 0;
    if (team_number(t,
                    "SELECT COUNT(*) FROM project_members WHERE project = :project AND "
                    "agent = :agent",
                    PARAMS(P_TEXT("project", project), P_TEXT("agent", t->who.agent)), &is, e) < 0)
        return -1;
    if (is > 0)
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "agent '" STR_FMT "' is not a member of the project",
            (int)size_min(t->who.agent.n, 64), t->who.agent.p);
    return err_hint(e, "join it first: holt project join");
}

int file_remove(struct team *t, struct str project, struct str name, struct err *e)
{
    struct board_file f;
    struct str by;

    if (agent_act_as(t, STR(""), &by, e) < 0 || board_need(t, project, e) < 0 ||
        check_member(t, project, e) < 0 || file_need(t, project, name, 0, &f, e) < 0)
        return -1;
    if (!team_is_person(t) && !str_eq(f.uploader, by))
        return err_set(e, ERR_FORBIDDEN, 0, "only people and its last uploader can remove a file");
    if (drop_files(t, project, name, INT64_MAX, e) < 0)
        return -1;
    file_event(t, "project.file_removed", &f);
    return 0;
}

/* --- adding --- */

static int check_room(struct team *t, const struct board_file *f, struct err *e)
{
    int64_t count, bytes;

    if (team_number(t, "SELECT COUNT(*) FROM project_files WHERE project = :project",
                    PARAMS(P_TEXT("project", f->project)), &count, e) < 0 ||
        team_number(t,
                    "SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM project_files "
                    "WHERE project = :project",
                    PARAMS(P_TEXT("project", f->project)), &bytes, e) < 0)
        return -1;
    if (count >= t->conf.objects_max) {
        err_set(e, ERR_FULL, 0, "the project has %lld files and versions already",
                (long long)count);
        return err_limit(e, "team_max", t->conf.objects_max, "remove some");
    }
    if (bytes > t->conf.project_bytes - f->size) {
        err_set(e, ERR_FULL, 0, "the project's files would have more than %lld bytes",
                (long long)t->conf.project_bytes);
        return err_limit(e, "project_bytes", t->conf.project_bytes, "remove some");
    }
    return 0;
}

static int check_uploader(struct team *t, struct board_file *f, struct err *e)
{
    if (agent_act_as(t, f->uploader, &f->uploader, e) < 0)
        return -1;
    if (f->uploader.n == 0)
        f->uploader = STR("unknown");
    return team_check_name("an uploader's name", f->uploader, e);
}

int file_put(struct team *t, struct board_file *f, struct err *e)
{
    int64_t last;

    if (file_check_name(f->name, e) < 0 || board_need(t, f->project, e) < 0 ||
        check_member(t, f->project, e) < 0 || check_uploader(t, f, e) < 0 ||
        team_number(t,
                    "SELECT COALESCE(MAX(version), 0) FROM project_files WHERE "
                    "project = :project AND name = :name",
                    PARAMS(P_TEXT("project", f->project), P_TEXT("name", f->name)), &last, e) < 0 ||
        drop_files(t, f->project, f->name, last + 1 - t->conf.file_versions, e) < 0 ||
        check_room(t, f, e) < 0)
        return -1;
    f->version = last + 1;
    f->created_ms = t->now_ms;
    if (tx_run(t->tx,
               "INSERT INTO project_files (project, name, version, hash, size, uploader, "
               "created_ms) VALUES (:project, :name, :version, :hash, :size, :uploader, :now)",
               PARAMS(P_TEXT("project", f->project), P_TEXT("name", f->name),
                      P_INT("version", f->version), P_TEXT("hash", f->hash), P_INT("size", f->size),
                      P_TEXT("uploader", f->uploader), P_INT("now", t->now_ms)),
               e) < 0)
        return -1;
    file_event(t, "project.file", f);
    return 0;
}
