/* holt-unpack: turns a hostile archive into files below one directory. */

/*   holt-unpack [OPTION...] layer|root|image|clear DIR
 *
 * The archive comes on standard input: a tar, plain or compressed with gzip or zstd.
 *   layer  one layer of an image: whiteouts become overlayfs's
 *   root   a whole root tree: as layer, but ".wh." names are ordinary names
 *   image  the outer archive of an image; prints "format=root" if it is a root tree instead
 *   clear  no archive: removes everything below DIR
 * It runs in a sandbox of its own that has nothing but DIR (docs/images.md).  The last lines of its
 * standard output are "key=value" each: the result, or error, code and message.  Exit: 0, or 1
 * after an error.
 *
 * Options: --max-bytes=N --max-files=N --max-ratio=N --max-seconds=N --keep-setuid */
#include "base/fd.h"
#include "unpack/image.h"
#include "unpack/source.h"
#include "unpack/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
    uint64_t bytes_max, files_max, ratio_max, seconds_max;
    bool keep_setuid;
    const char *mode, *dir;
};

struct run {
    const struct options *o;
    int root;
    struct source *source;
    struct tree *tree;      /* layer, root */
    struct image_out image; /* image */
    bool not_image;
};

static int usage(void)
{
    (void)fprintf(stderr, "usage: holt-unpack [--max-bytes=N] [--max-files=N] [--max-ratio=N] "
                          "[--max-seconds=N] [--keep-setuid] layer|root|image|clear DIR\n");
    return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
    const struct {
        struct str name;
        uint64_t *to;
    } numbers[] = {{STR("--max-bytes="), &o->bytes_max},
                   {STR("--max-files="), &o->files_max},
                   {STR("--max-ratio="), &o->ratio_max},
                   {STR("--max-seconds="), &o->seconds_max}};
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        struct str arg = str_of(argv[i]);
        bool known = strcmp(argv[i], "--keep-setuid") == 0;

        o->keep_setuid |= known;
        for (size_t k = 0; k < ARRAY_LEN(numbers) && !known; k++)
            known = str_starts(arg, numbers[k].name) &&
                    str_parse_u64(str_skip(arg, numbers[k].name.n), numbers[k].to) == 0;
        if (!known)
            return -1;
    }
    if (argc - i != 2)
        return -1;
    o->mode = argv[i];
    o->dir = argv[i + 1];
    return 0;
}

/* --- entries --- */

static int on_told(struct run *r, int told, const struct tar_entry *en, struct str data,
                   struct err *e)
{
    int c;

    if (r->tree) {
        if (told == TAR_ENTRY)
            return tree_entry(r->tree, en, e);
        return told == TAR_DATA ? tree_data(r->tree, data, e) : tree_entry_end(r->tree, e);
    }
    if (told != TAR_ENTRY)
        return told == TAR_DATA ? image_data(&r->image, data, e) : image_entry_end(&r->image, e);
    c = image_entry(&r->image, en, e);
    r->not_image = c > 0;
    return c < 0 ? -1 : 0;
}

static int feed_tar(struct run *r, struct tar_reader *tar, struct str bytes, struct err *e)
{
    int told;

    do {
        struct str data = {0};

        told = tar_read(tar, &bytes, &data, e);
        if (told < 0)
            return -1;
        if (told != TAR_MORE && told != TAR_END && on_told(r, told, &tar->entry, data, e) < 0)
            return -1;
    } while (told != TAR_MORE && told != TAR_END && !r->not_image);
    return 0;
}

static int unpack(struct run *r, struct err *e)
{
    AUTO(tar_reader_done) struct tar_reader tar = {0};
    struct str bytes;
    int c;

    while ((c = source_read(r->source, &bytes, e)) > 0) {
        if (feed_tar(r, &tar, bytes, e) < 0)
            return -1;
        if (r->not_image)
            return 0;
    }
    if (c < 0)
        return -1;
    if (source_bytes(r->source) == 0)
        return err_set(e, ERR_INVALID, 0, "the archive is empty");
    if (!tar_may_end(&tar))
        return err_set(e, ERR_INVALID, 0, "the archive ends too early");
    return r->tree ? tree_end(r->tree, e) : 0;
}

/* --- the result --- */

static void tell(const char *key, uint64_t v)
{
    (void)printf("%s=%llu\n", key, (unsigned long long)v);
}

static void tell_tree(const struct tree_counts *c)
{
    tell("entries", c->entries);
    tell("bytes", c->bytes);
    tell("whiteouts", c->whiteouts);
    tell("nodes_left", c->nodes_left);
    tell("xattrs_left", c->xattrs_left);
    tell("owners_left", c->owners_left);
    tell("setuid_cut", c->setuid_cut);
}

static void tell_result(struct run *r)
{
    char digest[2 * HASH_SIZE + 1];

    if (r->not_image) {
        (void)printf("format=root\n");
        return;
    }
    if (r->tree) {
        (void)printf("format=%s\n", r->o->mode);
        tell_tree(tree_counts(r->tree));
    } else {
        (void)printf("format=%s\n", r->image.is_docker ? "docker"
                                    : r->image.is_oci  ? "oci"
                                                       : "root");
        tell("entries", r->image.entries);
        tell("bytes", r->image.bytes);
    }
    source_digest(r->source, digest);
    (void)printf("compression=%s\ndiff_id=sha256:%s\n", source_compression(r->source), digest);
}

/* Prints one line, whatever an archive's names contain. */
static int tell_error(const struct err *e)
{
    (void)printf("error=%s ", err_table[e->code].name);
    for (const char *p = e->msg; *p; p++)
        (void)putchar((unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p);
    (void)putchar('\n');
    return 1;
}

static void on_alarm(int signum)
{
    static const char text[] = "error=timeout the archive took too long to unpack\n";

    (void)signum;
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(1);
}

/* --- the program --- */

static int run_mode(struct run *r, struct err *e)
{
    const struct options *o = r->o;
    bool layer = strcmp(o->mode, "layer") == 0;

    if (strcmp(o->mode, "clear") == 0)
        return tree_clear(r->root, e);
    r->source = source_new(STDIN_FILENO, &(struct source_limits){o->bytes_max, o->ratio_max});
    if (layer || strcmp(o->mode, "root") == 0)
        r->tree = tree_new(r->root, &(struct tree_options){.files_max = o->files_max,
                                                           .whiteouts = layer,
                                                           .keep_setuid = o->keep_setuid});
    r->image = (struct image_out){.root = r->root, .files_max = o->files_max, .file = -1};
    if (unpack(r, e) < 0)
        return -1;
    if (!r->tree && !r->not_image && !r->image.is_oci && !r->image.is_docker)
        r->not_image = true;
    tell_result(r);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {
        .bytes_max = 32ULL << 30, .files_max = 2000000, .ratio_max = 250, .seconds_max = 3600};
    struct run r = {.o = &o, .root = -1};
    struct err e = {0};
    int c;

    if (parse(argc, argv, &o) < 0)
        return usage();
    if (strcmp(o.mode, "layer") != 0 && strcmp(o.mode, "root") != 0 &&
        strcmp(o.mode, "image") != 0 && strcmp(o.mode, "clear") != 0)
        return usage();
    (void)umask(022);
    (void)signal(SIGALRM, on_alarm);
    (void)alarm((unsigned)(o.seconds_max > 86400 ? 86400 : o.seconds_max));
    r.root = open(o.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r.root < 0)
        c = err_set(&e, ERR_INTERNAL, errno, "open '%.80s'", o.dir);
    else
        c = run_mode(&r, &e);
    tree_free(r.tree);
    source_free(r.source);
    fd_close(r.image.file);
    fd_close(r.root);
    return c < 0 ? tell_error(&e) : 0;
}
