/* make: makes virtual machines and containers. */
#include "api/dialects/agentic/agentic.h"

#include "api/dialects/agentic/outfit.h"
#include "base/mem.h"
#include "conf/dialects/agentic/settings.h"
#include "core/sandbox/volume.h"

#define NAME_MAX_LEN 63
#define LIST_MAX 256
#define VCPUS_MAX 32
#define MEMORY_MAX 65536
#define DISK_MAX 500

static const struct {
    const char *ref, *label, *text;
} known_images[] = {
    {"agentic/claude:latest", "Claude Code", "Claude Code and its tools"},
    {"agentic/codex:latest", "Codex", "Codex and its tools"},
    {"agentic/opencode:latest", "OpenCode", "OpenCode and its tools"},
    {"agentic/automation-control:latest", "Automation control", "Tools that control a desktop"},
};

void agentic_images(struct request *r)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "images");
    jw_array(&w);
    for (size_t i = 0; i < ARRAY_LEN(known_images); i++) {
        jw_object(&w);
        jw_kc(&w, "ref", known_images[i].ref);
        jw_kc(&w, "label", known_images[i].label);
        jw_kc(&w, "description", known_images[i].text);
        if (i == 0)
            jw_kbool(&w, "default", true);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

bool agentic_name_is_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!(name.p[i] >= 'a' && name.p[i] <= 'z') && !(name.p[i] >= '0' && name.p[i] <= '9') &&
            name.p[i] != '-')
            return false;
    return name.n > 0 && name.n <= NAME_MAX_LEN;
}

/* --- machines --- */

static int number_of(const json_t *body, const char *key, int64_t preset, int64_t max, int64_t *ret)
{
    const json_t *v = json_object_get(body, key);

    *ret = preset;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < 1)
        return -1;
    *ret = json_integer_value(v);
    return *ret > max ? 1 : 0;
}

static bool refuse_size(struct request *r, int result, const char *key, const char *code,
                        int64_t max)
{
    if (result < 0)
        agentic_code(r, 400, "INVALID_RESOURCE_VALUE", "'%s' must be a number from 1 to %lld", key,
                     (long long)max);
    else if (result > 0)
        agentic_code(r, 400, code, "'%s' must be at most %lld", key, (long long)max);
    return result != 0;
}

static bool read_sizes(struct request *r, const json_t *body, struct sandbox_limits *l)
{
    int64_t cpus, memory, disk;

    if (refuse_size(r, number_of(body, "vcpus", 4, VCPUS_MAX, &cpus), "vcpus", "TOO_MANY_CPUS",
                    VCPUS_MAX) ||
        refuse_size(r, number_of(body, "memory_mb", 8192, MEMORY_MAX, &memory), "memory_mb",
                    "TOO_MUCH_MEMORY", MEMORY_MAX) ||
        refuse_size(r, number_of(body, "disk_gb", 50, DISK_MAX, &disk), "disk_gb", "DISK_TOO_LARGE",
                    DISK_MAX))
        return false;
    l->cpu_millis = cpus * 1000;
    l->memory_bytes = memory << 20;
    l->disk_bytes = disk << 30;
    return true;
}

static bool name_is_taken(struct request *r, struct str name)
{
    struct err e = {0};

    return sandbox_find_as(r->api->c.sandboxes, &r->who, STR(AGENTIC_DIALECT), name, &e) != NULL;
}

static void send_operation(struct request *r, const struct operation *op)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_key(&w, "operation");
    operation_write(&w, op);
    jw_object_end(&w);
    request_send_json(r, 202);
}

static void vm_read(struct request *r, const json_t *body)
{
    struct str name = agentic_member(body, "name");
    struct sandbox_spec spec = {
        .name = name, .runtime = STR(AGENTIC_VM), .dialect = STR(AGENTIC_DIALECT)};
    struct pair labels[2] = {{STR("profile"), agentic_member(body, "profile")},
                             {STR("loadout"), agentic_member(body, "loadout")}};
    AUTO(loadout_plan_done) struct loadout_plan plan = {0};
    const struct principal by = request_who(r);
    sandbox_cb made = operation_end;
    struct outfit outfit;
    bool outfitted = outfit_read(r, body, &outfit);
    struct err e = {0};
    void *arg;

    if (!agentic_name_is_valid(name)) {
        agentic_code(r, 400, "INVALID_VM_NAME",
                     "a name has 1 to %d characters of [a-z0-9-]: ^[a-z0-9-]+$", NAME_MAX_LEN);
        return;
    }
    if (outfit.given > 1) {
        agentic_code(r, 400, "VALIDATION_ERROR",
                     "give one of 'profile', 'loadout' and 'composition'");
        return;
    }
    outfit.base = STR("");
    if (outfitted && outfit_plan(r, &outfit, &plan, &e) < 0) {
        agentic_code(r, 400, "VALIDATION_ERROR", "%s", e.msg);
        return;
    }
    if (!read_sizes(r, body, &spec.traits.limits))
        return;
    if (name_is_taken(r, name)) {
        agentic_code(r, 409, "VM_ALREADY_EXISTS", "VM '" STR_FMT "' already exists", STR_ARG(name));
        return;
    }
    spec.labels = labels[0].value.n > 0 ? labels : labels + 1;
    spec.label_count = labels[0].value.n > 0 || labels[1].value.n > 0;
    spec.image = agentic_member(body, "image").n > 0
                     ? agentic_member(body, "image")
                     : str_of(agentic_settings(r->api->c.conf)->vm_image);
    arg = operation_begin(r, "vm_create", name);
    send_operation(r, arg);
    if (outfitted) { /* its steps reach what it reaches */
        spec.network = plan.network.n > 0 ? arena_str(xchg_arena(r->x), plan.network)
                                          : builds_network(r->api->c.builds, xchg_arena(r->x));
        spec.house_network = plan.network.n == 0;
        made = outfit_install(r, &plan, arg, &arg);
    }
    sandbox_create(r->api->c.sandboxes, &spec, &by, made, arg);
}

void agentic_vm_create(struct request *r)
{
    agentic_collect(r, vm_read);
}

/* --- containers --- */

struct container {
    struct pair env[LIST_MAX];
    struct volume_use volumes[LIST_MAX];
    struct str cmd[LIST_MAX];
    size_t env_count, volume_count, cmd_count;
};

struct make_job {
    struct waiter waiter;
    struct principal by;
    char *image;
    struct arena arena;
    struct str *cmd;
    size_t cmd_count;
};

static void make_job_free(struct make_job *j)
{
    mem_free(j->image);
    arena_done(&j->arena);
    mem_free(j);
}

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* its record has the result */
}

static void start_command(struct make_job *j, struct sandbox *s)
{
    const struct exec_spec spec = {.argv = j->cmd, .argc = j->cmd_count, .standing = true};

    if (j->cmd_count > 0)
        exec_start(s, &spec, &j->by, command_started, NULL);
}

static void container_made(void *arg, struct sandbox *s, const struct err *e)
{
    struct make_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct sandbox_info i;
    struct jw w;

    if (e->code == ERR_NONE)
        start_command(j, s);
    if (r && e->code != ERR_NONE) {
        agentic_fail(r, err_table[e->code].http, e);
    } else if (r) {
        sandbox_info(s, &i);
        w = request_json(r);
        jw_object(&w);
        jw_kc(&w, "id", i.id);
        jw_kstr(&w, "name", agentic_name(&i));
        jw_kc(&w, "image", j->image);
        jw_kc(&w, "status", "running");
        jw_object_end(&w);
        request_send_json(r, 201);
    }
    make_job_free(j);
}

/* "K=V", or {"key", "value"}. */
static bool read_env(const json_t *list, struct container *c)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        struct pair *p = &c->env[c->env_count];

        if (c->env_count == LIST_MAX)
            return false;
        if (json_is_string(one))
            p->key = str_cut(str_of(json_string_value(one)), '=', &p->value);
        else
            *p = (struct pair){agentic_member(one, "key"), agentic_member(one, "value")};
        if (p->key.n == 0)
            return false;
        p->value = p->value.p ? p->value : STR("");
        c->env_count++;
    }
    return true;
}

/* "VOLUME:PATH": directories of the host are not for clients. */
static bool read_mounts(const json_t *list, struct container *c)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        struct volume_use *u = &c->volumes[c->volume_count];

        if (!text || text[0] == '/' || c->volume_count == LIST_MAX)
            return false;
        u->name = str_cut(str_of(text), ':', &u->path);
        c->volume_count++;
    }
    return true;
}

static bool read_cmd(const json_t *list, struct container *c)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text || c->cmd_count == LIST_MAX)
            return false;
        c->cmd[c->cmd_count++] = str_of(text);
    }
    return true;
}

static void create_container(struct request *r, const struct sandbox_spec *spec,
                             const struct container *c)
{
    struct make_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    j->image = str_dup(agentic_member(r->body, "image").n > 0 ? agentic_member(r->body, "image")
                                                              : spec->image);
    j->cmd = arena_zalloc(&j->arena, (c->cmd_count + 1) * sizeof *j->cmd);
    for (; j->cmd_count < c->cmd_count; j->cmd_count++)
        j->cmd[j->cmd_count] = arena_str(&j->arena, c->cmd[j->cmd_count]);
    request_wait(r, &j->waiter);
    sandbox_create(r->api->c.sandboxes, spec, &j->by, container_made, j);
}

/* image: that of its loadout; empty: the body's. */
static void make_container(struct request *r, struct str image)
{
    const json_t *body = r->body;
    struct container *c = arena_zalloc(xchg_arena(r->x), sizeof *c);
    struct pair *label = arena_zalloc(xchg_arena(r->x), sizeof *label);
    struct sandbox_spec spec = {.name = agentic_member(body, "name"),
                                .image = image.n > 0 ? image : agentic_member(body, "image"),
                                .network = agentic_member(body, "network"),
                                .dialect = STR(AGENTIC_DIALECT)};

    if (!read_env(json_object_get(body, "env"), c) || !read_cmd(json_object_get(body, "cmd"), c)) {
        agentic_error(r, 422, "'env' is a list of \"K=V\" or {key, value}, 'cmd' a list of texts");
        return;
    }
    if (!read_mounts(json_object_get(body, "mounts"), c)) {
        agentic_error(r, 400,
                      "'mounts' is a list of \"VOLUME:PATH\"; directories of the host are "
                      "not mounted (make a volume: holt volume create)");
        return;
    }
    if (name_is_taken(r, spec.name)) {
        agentic_error(r, 409, "container name already in use: " STR_FMT, STR_ARG(spec.name));
        return;
    }
    spec.env = c->env;
    spec.env_count = c->env_count;
    spec.volumes = c->volumes;
    spec.volume_count = c->volume_count;
    *label = (struct pair){STR("loadout"), agentic_member(body, "loadout")};
    spec.labels = label;
    spec.label_count = label->value.n > 0;
    create_container(r, &spec, c);
}

static void container_read(struct request *r, const json_t *body)
{
    struct str name = agentic_member(body, "name");
    struct outfit outfit;
    bool outfitted = outfit_read(r, body, &outfit);

    if (!agentic_name_is_valid(name) || (agentic_member(body, "image").n == 0 && !outfitted)) {
        agentic_error(r, 400, "'name' (^[a-z0-9-]+$, at most %d characters) and 'image' are needed",
                      NAME_MAX_LEN);
        return;
    }
    if (name_is_taken(r, name))
        agentic_error(r, 409, "container name already in use: " STR_FMT, STR_ARG(name));
    else if (outfit.given > 1)
        agentic_error(r, 400, "give one of 'profile', 'loadout' and 'composition'");
    else if (outfitted)
        outfit_image(r, &outfit, make_container);
    else
        make_container(r, STR(""));
}

void agentic_container_create(struct request *r)
{
    agentic_collect(r, container_read);
}
