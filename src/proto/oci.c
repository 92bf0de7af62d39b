/* oci: parses image indexes, manifests and configs, strictly. */
#include "proto/oci.h"

#include "base/mem.h"
#include "proto/json.h"

#include <sys/utsname.h>

#define DIGEST_PREFIX "sha256:"

bool oci_digest_is_valid(struct str s)
{
    if (s.n != OCI_DIGEST_SIZE - 1 || !str_starts(s, STR(DIGEST_PREFIX)))
        return false;
    for (size_t i = strlen(DIGEST_PREFIX); i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return true;
}

static int bad(struct err *e, const char *what)
{
    return err_set(e, ERR_INVALID, 0, "the image's %s", what);
}

static int read_doc(struct str doc, const char *what, json_t **ret, struct err *e)
{
    if (doc.n > OCI_DOC_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the image's %s is larger than %d bytes", what,
                       OCI_DOC_MAX);
    if (json_read(doc, ret, e) < 0)
        return err_wrap(e, "the image's %s", what);
    return 0;
}

static struct str text_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : (struct str){0};
}

static int copy_text(struct str s, char *to, size_t size)
{
    if (s.n >= size)
        return -1;
    memcpy(to, s.p ? s.p : "", s.n);
    to[s.n] = '\0';
    return 0;
}

/* --- descriptors --- */

static enum oci_media media_of(struct str type)
{
    if (str_eq_c(type, "application/vnd.oci.image.index.v1+json") ||
        str_eq_c(type, "application/vnd.docker.distribution.manifest.list.v2+json"))
        return OCI_INDEX;
    if (str_eq_c(type, "application/vnd.oci.image.manifest.v1+json") ||
        str_eq_c(type, "application/vnd.docker.distribution.manifest.v2+json"))
        return OCI_MANIFEST;
    if (str_starts(type, STR("application/vnd.oci.image.layer.v1.tar")) ||
        str_starts(type, STR("application/vnd.docker.image.rootfs.diff.tar")))
        return OCI_LAYER;
    return OCI_OTHER;
}

static int read_blob(const json_t *v, struct oci_blob *ret, struct err *e)
{
    struct str digest = text_of(v, "digest");
    const json_t *size = json_object_get(v, "size");

    if (!json_is_object(v) || !oci_digest_is_valid(digest))
        return bad(e, "documents refer to a part without a SHA-256 digest");
    if (!json_is_integer(size) || json_integer_value(size) < 0 ||
        json_integer_value(size) > OCI_BLOB_MAX)
        return bad(e, "documents refer to a part without a valid size");
    memcpy(ret->digest, digest.p, digest.n);
    ret->digest[digest.n] = '\0';
    ret->size = json_integer_value(size);
    ret->media = media_of(text_of(v, "mediaType"));
    return 0;
}

int oci_kind(struct str doc, enum oci_media *ret, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    bool many, one;

    if (read_doc(doc, "manifest", &v, e) < 0)
        return -1;
    many = json_is_array(json_object_get(v, "manifests"));
    one = json_is_array(json_object_get(v, "layers"));
    if (many == one) /* a document that is both would mean different things to different readers */
        return bad(e, "manifest is neither an index nor an image manifest");
    if (json_object_get(v, "schemaVersion") &&
        json_integer_value(json_object_get(v, "schemaVersion")) != 2)
        return bad(e, "manifest has an old schema; only version 2 is supported");
    *ret = many ? OCI_INDEX : OCI_MANIFEST;
    return 0;
}

/* --- index --- */

const char *oci_arch_of_host(void)
{
    static const struct {
        const char *machine, *arch;
    } names[] = {{"x86_64", "amd64"},    {"aarch64", "arm64"}, {"riscv64", "riscv64"},
                 {"ppc64le", "ppc64le"}, {"s390x", "s390x"},   {"armv7l", "arm"},
                 {"i686", "386"}};
    struct utsname u;

    if (uname(&u) < 0)
        return "amd64";
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(u.machine, names[i].machine) == 0)
            return names[i].arch;
    return "amd64";
}

static bool platform_fits(const json_t *m, const struct oci_want *want)
{
    const json_t *p = json_object_get(m, "platform");

    return !p || (str_eq_c(text_of(p, "os"), want->os) &&
                  str_eq_c(text_of(p, "architecture"), want->arch));
}

static bool tag_fits(const json_t *m, const struct oci_want *want)
{
    struct str name =
        text_of(json_object_get(m, "annotations"), "org.opencontainers.image.ref.name");

    return want->tag.n == 0 || name.n == 0 || str_eq(name, want->tag);
}

int oci_index_pick(struct str doc, const struct oci_want *want, struct oci_blob *ret, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    const json_t *list, *found = NULL;
    size_t i;
    json_t *m;

    if (read_doc(doc, "index", &v, e) < 0)
        return -1;
    list = json_object_get(v, "manifests");
    if (!json_is_array(list) || json_array_size(list) > OCI_MANIFESTS_MAX)
        return bad(e, "index has no list of manifests, or one that is too long");
    json_array_foreach(list, i, m) if (!found && platform_fits(m, want) && tag_fits(m, want))
        found = m;
    if (!found) {
        err_set(e, ERR_NOT_FOUND, 0, "the image is not available for %s/%s%s" STR_FMT, want->os,
                want->arch, want->tag.n > 0 ? " named " : "", STR_ARG(want->tag));
        return err_hint(e, "pull an image that is built for this machine");
    }
    return read_blob(found, ret, e);
}

/* --- manifest --- */

int oci_manifest_read(struct str doc, struct oci_manifest *ret, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    AUTO(oci_manifest_done) struct oci_manifest m = {0};
    const json_t *layers;

    if (read_doc(doc, "manifest", &v, e) < 0)
        return -1;
    if (read_blob(json_object_get(v, "config"), &m.config, e) < 0)
        return -1;
    layers = json_object_get(v, "layers");
    if (!json_is_array(layers) || json_array_size(layers) == 0 ||
        json_array_size(layers) > OCI_LAYERS_MAX)
        return bad(e, "manifest has no layers, or too many");
    m.layers = xzalloc(json_array_size(layers) * sizeof m.layers[0]);
    for (; m.layer_count < json_array_size(layers); m.layer_count++) {
        struct oci_blob *b = &m.layers[m.layer_count];

        if (read_blob(json_array_get(layers, m.layer_count), b, e) < 0)
            return -1;
        if (b->media != OCI_LAYER)
            return bad(e, "manifest has a layer that is not a tar archive");
    }
    *ret = m;
    m = (struct oci_manifest){0};
    return 0;
}

void oci_manifest_done(struct oci_manifest *m)
{
    mem_free(m->layers);
    *m = (struct oci_manifest){0};
}

/* --- config --- */

static bool is_text_list(const json_t *v)
{
    size_t i;
    json_t *item;

    if (!json_is_array(v))
        return false;
    json_array_foreach(v, i, item) if (!json_is_string(item)) return false;
    return true;
}

static char *read_defaults(const json_t *config)
{
    static const struct {
        const char *from, *to;
    } lists[] = {{"Env", "env"}, {"Entrypoint", "entrypoint"}, {"Cmd", "cmd"}},
      texts[] = {{"WorkingDir", "workdir"}, {"User", "user"}};
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};

    jw_object(&w);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        const json_t *v = json_object_get(config, lists[i].from);

        if (!is_text_list(v))
            continue;
        jw_key(&w, lists[i].to);
        jw_json(&w, v);
    }
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (text_of(config, texts[i].from).n > 0)
            jw_kstr(&w, texts[i].to, text_of(config, texts[i].from));
    jw_object_end(&w);
    return buf_len(&b) > OCI_DEFAULTS_MAX ? NULL : buf_steal(&b);
}

static int read_diff_ids(const json_t *list, struct oci_config *c, struct err *e)
{
    if (!json_is_array(list) || json_array_size(list) == 0 ||
        json_array_size(list) > OCI_LAYERS_MAX)
        return bad(e, "config has no diff_ids, or too many");
    c->diff_ids = xzalloc(json_array_size(list) * sizeof c->diff_ids[0]);
    for (; c->diff_count < json_array_size(list); c->diff_count++) {
        const json_t *v = json_array_get(list, c->diff_count);
        struct str s = {json_string_value(v), json_string_length(v)};

        if (!json_is_string(v) || !oci_digest_is_valid(s))
            return bad(e, "config has a diff_id that is not a SHA-256 digest");
        memcpy(c->diff_ids[c->diff_count], s.p, s.n + 1);
    }
    return 0;
}

int oci_config_read(struct str doc, struct oci_config *ret, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    AUTO(oci_config_done) struct oci_config c = {0};

    if (read_doc(doc, "config", &v, e) < 0)
        return -1;
    if (copy_text(text_of(v, "os"), c.os, sizeof c.os) < 0 ||
        copy_text(text_of(v, "architecture"), c.arch, sizeof c.arch) < 0)
        return bad(e, "config has no valid platform");
    if (read_diff_ids(json_object_get(json_object_get(v, "rootfs"), "diff_ids"), &c, e) < 0)
        return -1;
    c.defaults = read_defaults(json_object_get(v, "config"));
    if (!c.defaults)
        return err_set(e, ERR_TOO_LARGE, 0, "the image's config has more than %d bytes of defaults",
                       OCI_DEFAULTS_MAX);
    *ret = c;
    c = (struct oci_config){0};
    return 0;
}

void oci_config_done(struct oci_config *c)
{
    mem_free(c->diff_ids);
    mem_free(c->defaults);
    *c = (struct oci_config){0};
}

/* --- docker save --- */

/* "HEX.json", "HEX/layer.tar", "HEX.tar", "blobs/sha256/HEX": the names the unpacker accepts. */
static int read_file_name(const json_t *v, char to[OCI_FILE_SIZE])
{
    static const struct {
        const char *before, *after;
    } forms[] = {{"", ".json"}, {"", "/layer.tar"}, {"", ".tar"}, {"blobs/sha256/", ""}};
    struct str s = {json_string_value(v), json_string_length(v)};

    for (size_t i = 0; json_is_string(v) && i < ARRAY_LEN(forms); i++) {
        size_t before = strlen(forms[i].before);
        char digest[OCI_DIGEST_SIZE] = DIGEST_PREFIX;

        if (s.n != before + 64 + strlen(forms[i].after) ||
            !str_starts(s, str_of(forms[i].before)) || !str_ends(s, str_of(forms[i].after)))
            continue;
        memcpy(digest + strlen(DIGEST_PREFIX), s.p + before, 64);
        if (oci_digest_is_valid(str_make(digest, sizeof digest - 1)))
            return copy_text(s, to, OCI_FILE_SIZE);
    }
    return -1;
}

static const json_t *pick_docker(const json_t *list, struct str tag)
{
    size_t i, k;
    json_t *image, *name;

    if (tag.n == 0)
        return json_array_size(list) == 1 ? json_array_get(list, 0) : NULL;
    json_array_foreach(list, i, image) json_array_foreach(
        json_object_get(image, "RepoTags"), k,
        name) if (json_is_string(name) && str_eq_c(tag, json_string_value(name))) return image;
    return NULL;
}

static int read_docker(const json_t *image, struct oci_docker *d, struct err *e)
{
    const json_t *layers = json_object_get(image, "Layers");
    const json_t *name = json_array_get(json_object_get(image, "RepoTags"), 0);

    if (read_file_name(json_object_get(image, "Config"), d->config) < 0)
        return bad(e, "manifest.json has no valid config file");
    if (!json_is_array(layers) || json_array_size(layers) == 0 ||
        json_array_size(layers) > OCI_LAYERS_MAX)
        return bad(e, "manifest.json has no layers, or too many");
    d->layers = xzalloc(json_array_size(layers) * sizeof d->layers[0]);
    for (; d->layer_count < json_array_size(layers); d->layer_count++)
        if (read_file_name(json_array_get(layers, d->layer_count), d->layers[d->layer_count]) < 0)
            return bad(e, "manifest.json has no valid layer file");
    if (json_is_string(name) && json_string_length(name) < 512)
        d->name = xstrdup(json_string_value(name));
    return 0;
}

int oci_docker_read(struct str doc, struct str tag, struct oci_docker *ret, struct err *e)
{
    AUTO(json_decref) json_t *v = NULL;
    AUTO(oci_docker_done) struct oci_docker d = {0};
    const json_t *image;

    if (read_doc(doc, "manifest.json", &v, e) < 0)
        return -1;
    if (!json_is_array(v) || json_array_size(v) == 0 || json_array_size(v) > OCI_MANIFESTS_MAX)
        return bad(e, "manifest.json is not a list of images");
    image = pick_docker(v, tag);
    if (!image) {
        err_set(e, ERR_NOT_FOUND, 0, "the archive has %zu images; choose one", json_array_size(v));
        return err_hint(e, "choose one with --tag NAME:TAG");
    }
    if (read_docker(image, &d, e) < 0)
        return -1;
    *ret = d;
    d = (struct oci_docker){0};
    return 0;
}

void oci_docker_done(struct oci_docker *d)
{
    mem_free(d->layers);
    mem_free(d->name);
    *d = (struct oci_docker){0};
}
