/* Loadouts: what extends what, in which order; what is merged how; what is refused. */
#include "core/imagebuild/dockerfile.h"
#include "core/loadout/loadout.h"
#include "proto/yaml.h"

#include "unit.h"

#include <sys/stat.h>

static char dir[] = "/tmp/loadout-XXXXXX";
static struct loadouts *all;
static char image[] = "host", *image_at = image;

static void put(const char *name, const char *text)
{
    char path[200];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

#define HEAD(kind, name) "apiVersion: loadout/v1\nkind: " kind "\nmetadata: {name: " name "}\n"

static void open_all(void)
{
    struct err e = {0};

    all = loadouts_free(all);
    if (loadouts_open(&(struct loadouts_config){.dir = dir, .image = &image_at}, &all, &e) < 0)
        fail_msg("%s", e.msg);
}

static json_t *resolve(const char *ref)
{
    json_t *to = NULL;
    struct err e = {0};

    if (loadout_resolve(all, &(struct loadout_ref){.name = str_of(ref)}, &to, &e) < 0)
        fail_msg("%s", e.msg);
    return to;
}

static void same(const json_t *at, const char *want)
{
    char *text = json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

    assert_string_equal(text, want);
    free(text);
}

static void parents_come_first_and_lists_keep_their_order(void **state)
{
    AUTO(json_decref) json_t *m = NULL;

    (void)state;
    put("a.yaml",
        HEAD("layer",
             "a") "packages: [zsh, curl]\nresources: {cpus: 2, memory: 1G}\nruncmd: [z, a]\n");
    put("b.yaml",
        HEAD("layer", "b") "extends: [a.yaml]\npackages: [git, curl]\nresources: {cpus: 4}\n");
    put("c.yaml", HEAD("layer", "c") "extends: [a.yaml]\nnetwork: {mode: isolated}\n");
    put("d.yaml", HEAD("loadout", "d") "extends: [b.yaml, c.yaml]\npackages: [ack]\nruncmd: "
                                       "[m]\ndocker: {mode: disabled}\n");
    open_all();
    m = resolve("d");
    assert_null(json_object_get(m, "extends"));
    same(json_object_get(m, "packages"), "[\"zsh\",\"curl\",\"git\",\"ack\"]");
    same(json_object_get(m, "runcmd"), "[\"z\",\"a\",\"m\"]"); /* a diamond, and no sorting */
    same(json_object_get(m, "resources"), "{\"cpus\":2,\"memory\":\"1G\"}"); /* a again, after b */
    same(json_object_get(m, "metadata"), "{\"name\":\"d\"}");
}

static void lists_of_objects_are_joined_and_the_rest_is_replaced(void **state)
{
    AUTO(json_decref)
    json_t *a = json_loads(
        "{\"x\": [{\"n\": 1}], \"y\": [], \"z\": {\"k\": 1, \"l\": 2}, \"t\": \"old\", \"m\": [1]}",
        0, NULL);
    AUTO(json_decref)
    json_t *b = json_loads("{\"x\": [{\"n\": 2}, {\"n\": 1}], \"y\": [\"p\"], \"z\": {\"k\": "
                           "null}, \"t\": [\"new\"], \"m\": [2]}",
                           0, NULL);

    (void)state;
    loadout_merge(a, b);
    same(a, "{\"m\":[2],\"t\":[\"new\"],\"x\":[{\"n\":1},{\"n\":2}],\"y\":[\"p\"],\"z\":{\"k\":"
            "null,\"l\":2}}");
}

static void refused(const struct loadout_ref *ref, const char *why)
{
    json_t *to = NULL;
    struct err e = {0};

    assert_true(loadout_resolve(all, ref, &to, &e) < 0);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void circles_and_unknown_parents_are_named(void **state)
{
    (void)state;
    put("x.yaml", HEAD("loadout", "x") "extends: [y.yaml]\n");
    put("y.yaml", HEAD("layer", "y") "extends: [z.yaml]\n");
    put("z.yaml", HEAD("layer", "z") "extends: [x.yaml]\n");
    put("lost.yaml", HEAD("loadout", "lost") "extends: [nowhere.yaml]\n");
    open_all();
    refused(&(struct loadout_ref){.name = STR("x")}, "x.yaml -> y.yaml -> z.yaml -> x.yaml");
    refused(&(struct loadout_ref){.name = STR("lost")}, "nowhere.yaml");
    refused(&(struct loadout_ref){.name = STR("/etc/passwd")}, "a path of the server");
    refused(&(struct loadout_ref){.name = STR("../x.yaml")}, "there is no loadout");
    refused(&(struct loadout_ref){0}, "give one of");
}

static void absolute_paths_below_the_directory_are_taken(void **state)
{
    char path[200];
    AUTO(json_decref) json_t *m = NULL;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/d.yaml", dir);
    m = resolve(path);
    same(json_object_get(m, "metadata"), "{\"name\":\"d\"}");
    (void)snprintf(path, sizeof path, "%s-other/d.yaml", dir);
    refused(&(struct loadout_ref){.name = str_of(path)}, "a path of the server");
}

static void every_shipped_one_resolves(void **state)
{
    static const char *const names[] = {
        "basic",       "agentic-dev",    "claude-only",       "codex-only",     "copilot-only",
        "dual-review", "multi-provider", "full-suite",        "security-audit", "research-station",
        "sdlc-team",   "browser-qa",     "automation-control"};
    struct loadout_info i;
    size_t profiles = 0;

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(names); k++) {
        AUTO(json_decref) json_t *m = resolve(names[k]);
        struct loadout_plan p = {0};
        struct err e = {0};

        if (loadout_steps(m, &p, &e) < 0)
            fail_msg("%s: %s", names[k], e.msg);
        assert_true(p.step_count > 0);
        loadout_plan_done(&p);
    }
    for (size_t k = 0; loadout_at(all, k, &i); k++)
        profiles += strncmp(i.path, "profiles/", 9) == 0;
    assert_int_equal(profiles, ARRAY_LEN(names));
}

static void full_suite_has_everything(void **state)
{
    AUTO(json_decref) json_t *m = resolve("full-suite");
    const json_t *tools = json_object_get(m, "ai_tools");

    (void)state;
    same(json_object_get(m, "resources"), "{\"cpus\":8,\"disk\":\"80G\",\"memory\":\"16G\"}");
    for (size_t i = 0; i < 4; i++)
        same(
            json_object_get(tools, (const char *[]){"claude_code", "aider", "codex", "copilot"}[i]),
            "{\"enabled\":true}");
    same(json_object_get(json_object_get(m, "docker"), "mode"), "\"rootless\"");
}

static void compositions_name_parts_of_the_registry(void **state)
{
    AUTO(json_decref)
    json_t *c = json_loads("{\"init\": \"ubuntu-minimal\", \"aiwg\": {\"frameworks\": [\"sdlc\"], "
                           "\"providers\": [\"codex\"]}}",
                           0, NULL);
    AUTO(json_decref) json_t *bad = json_loads("{\"init\": \"other\"}", 0, NULL);
    AUTO(json_decref)
    json_t *wrong = json_loads("{\"aiwg\": {\"providers\": [\"nobody\"]}}", 0, NULL);
    AUTO(json_decref) json_t *m = NULL;
    struct err e = {0};

    (void)state;
    assert_int_equal(loadout_resolve(all, &(struct loadout_ref){.composition = c}, &m, &e), 0);
    same(json_object_get(json_object_get(m, "ai_tools"), "codex"), "{\"enabled\":true}");
    same(json_object_get(m, "aiwg"),
         "{\"enabled\":true,\"frameworks\":[{\"name\":\"sdlc\",\"providers\":[\"codex\"]}]}");
    refused(&(struct loadout_ref){.composition = bad}, "no init 'other'");
    refused(&(struct loadout_ref){.composition = wrong}, "no provider 'nobody'");
}

static void manifest_refused(const char *yaml, const char *why)
{
    AUTO(json_decref) json_t *text = json_string(yaml);
    AUTO(json_decref) json_t *m = NULL;
    struct loadout_plan p = {0};
    struct err e = {0};
    int r = loadout_resolve(all, &(struct loadout_ref){.manifest = text}, &m, &e);

    if (r == 0)
        r = loadout_steps(m, &p, &e);
    loadout_plan_done(&p);
    assert_true(r < 0);
    if (!strstr(e.msg, why))
        fail_msg("'%s' does not say '%s'", e.msg, why);
}

static void wrong_ones_say_what_is_wrong(void **state)
{
    (void)state;
    manifest_refused("kind: loadout\n", "apiVersion must be 'loadout/v1'");
    manifest_refused("apiVersion: loadout/v1\nkind: other\n", "kind must be");
    manifest_refused("apiVersion: loadout/v1\nkind: loadout\n", "metadata.name is missing");
    manifest_refused(HEAD("loadout", "x") "packages: {a: b}\n", "'packages' must be a list");
    manifest_refused(HEAD("loadout", "x") "packages: ['--allow-unauthenticated']\n",
                     "is no name of a package");
    manifest_refused(HEAD("loadout", "x") "packages: ['a; rm -rf /']\n", "is no name of a package");
    manifest_refused(
        HEAD("loadout", "x") "runtimes: {node: {enabled: true, package_manager: evil}}\n",
        "package_manager");
    manifest_refused(HEAD("loadout", "x") "docker: {enabled: true, mode: privileged}\n",
                     "docker.mode");
    manifest_refused(HEAD("loadout", "x") "write_files: [{path: relative, content: x}]\n",
                     "must be absolute");
    manifest_refused(HEAD("loadout", "x") "runcmd: [{}]\n", "runcmd is a list of texts");
    manifest_refused("a: [\n", "line ");
}

static void a_file_s_content_is_quoted(void **state)
{
    AUTO(json_decref)
    json_t *text = json_string(
        HEAD("loadout", "x") "write_files: [{path: \"/a'b\", content: \"it's $HOME\"}]\n");
    AUTO(json_decref) json_t *m = NULL;
    struct loadout_plan p = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(loadout_resolve(all, &(struct loadout_ref){.manifest = text}, &m, &e), 0);
    assert_int_equal(loadout_steps(m, &p, &e), 0);
    assert_int_equal(p.step_count, 1);
    assert_non_null(strstr(p.steps[0].script.p, "'it'\\''s $HOME' > '/a'\\''b'\n"));
    loadout_plan_done(&p);
}

/* --- Dockerfiles --- */

static struct arena arena;

static struct str below(void *arg, struct str name)
{
    (void)arg, (void)name;
    return STR("{\"env\": [\"PATH=/base\", \"LANG=C\"]}");
}

static int read_file(const char *text, struct build_spec *ret, struct err *e)
{
    static const struct pair args[] = {{STR("VERSION"), STR("2")}};

    *e = (struct err){0};
    return dockerfile_read(&(struct dockerfile_in){.text = str_of(text),
                                                   .args = args,
                                                   .arg_count = 1,
                                                   .has_context = true,
                                                   .defaults = below},
                           &arena, ret, e);
}

static void a_dockerfile_becomes_steps(void **state)
{
    struct build_spec s;
    struct err e;

    (void)state;
    if (read_file("# syntax\nARG BASE=debian\nFROM ${BASE}:${TAG:-12} AS x\nARG VERSION=1\nENV "
                  "PATH=/x:$PATH A='$B' C=\"a b\"\n"
                  "WORKDIR /app\nWORKDIR sub\nRUN make \\\n  # between\n  install\nRUN [\"echo\", "
                  "\"it's\"]\nCOPY --chown=1:2 a b/ /etc/../dest/\n"
                  "USER app\nCMD echo $A\nENTRYPOINT [\"/bin/x\"]\nLABEL a=b\n",
                  &s, &e) < 0)
        fail_msg("%s", e.msg);
    assert_string_equal(s.from.p, "debian:12");
    assert_int_equal(s.step_count, 5);
    assert_string_equal(s.steps[1].script.p, "mkdir -p /app/sub");
    assert_non_null(strstr(s.steps[2].script.p, "make "));
    assert_non_null(strstr(s.steps[2].script.p, "install"));
    assert_null(strstr(s.steps[2].script.p, "between"));
    assert_string_equal(s.steps[2].cwd.p, "/app/sub");
    assert_string_equal(s.steps[3].script.p, "exec echo it\"'\"s");
    assert_true(s.steps[4].needs_context && s.steps[4].probe.n > 0);
    assert_string_equal(s.steps[4].user.p, "0:0");
    assert_string_equal(
        s.defaults.p,
        "{\"env\":[\"PATH=/x:/base\",\"A=$B\",\"C=a b\"],\"workdir\":\"/app/sub\",\"user\":\"app\","
        "\"entrypoint\":[\"/bin/x\"],\"cmd\":[\"/bin/sh\",\"-c\",\"echo "
        "$A\"],\"labels\":{\"a\":\"b\"}}");
    for (size_t i = 0; i < s.steps[2].env_count; i++)
        if (str_eq_c(s.steps[2].env[i].key, "VERSION"))
            assert_true(str_eq_c(s.steps[2].env[i].value, "2"));
}

static void wrong_lines_are_named(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "has no FROM"},
        {"RUN x\n", "line 1: FROM comes first"},
        {"FROM a\n\nADD x y\n", "line 3: ADD is not known; there are FROM, RUN"},
        {"FROM a\nFROM b\n", "line 2: there is a second FROM"},
        {"FROM scratch\n", "scratch"},
        {"FROM a\nRUN --mount=type=cache x\n", "RUN takes no flags"},
        {"FROM a\nRUN <<EOF\nx\nEOF\n", "here-document"},
        {"FROM a\nCOPY ../x /y\n", "leads out of the context"},
        {"FROM a\nCOPY a/../../x /y\n", "leads out of the context"},
        {"FROM a\nCOPY --from=b x /y\n", "does not know '--from=b'"},
        {"FROM a\nCOPY x\n", "a destination"},
        {"FROM a\nENV X\n", "ENV"},
        {"FROM a\nWORKDIR\n", "needs a directory"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct build_spec s;
        struct err e;

        if (read_file(cases[i].text, &s, &e) == 0)
            fail_msg("case %zu was taken", i);
        if (!strstr(e.msg, cases[i].why))
            fail_msg("'%s' does not say '%s'", e.msg, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents_come_first_and_lists_keep_their_order),
        cmocka_unit_test(lists_of_objects_are_joined_and_the_rest_is_replaced),
        cmocka_unit_test(circles_and_unknown_parents_are_named),
        cmocka_unit_test(absolute_paths_below_the_directory_are_taken),
        cmocka_unit_test(every_shipped_one_resolves),
        cmocka_unit_test(full_suite_has_everything),
        cmocka_unit_test(compositions_name_parts_of_the_registry),
        cmocka_unit_test(wrong_ones_say_what_is_wrong),
        cmocka_unit_test(a_file_s_content_is_quoted),
        cmocka_unit_test(a_dockerfile_becomes_steps),
        cmocka_unit_test(wrong_lines_are_named),
    };
    int r;

    assert_non_null(mkdtemp(dir));
    r = cmocka_run_group_tests_name("loadout", tests, NULL, NULL);
    loadouts_free(all);
    arena_done(&arena);
    return r;
}
