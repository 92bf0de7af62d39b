/* Descriptions for libvirt, each printed from a table of elements; values are escaped. */
#include "virt/virt.h"

#include <inttypes.h>
#include <stdio.h>

struct element {
    int depth;
    const char *name;
    const char *attributes; /* "key=value key=value" */
    const char *text; /* $NAME stands for a value; an element with an empty value is left out */
};

struct value {
    const char *name, *text;
};

/* clang-format off */
static const struct element domain_rows[] = {
    {0, "domain",      "type=$type",                        NULL},
    {1, "name",        NULL,                                "$name"},
    {1, "uuid",        NULL,                                "$uuid"},
    {1, "description", NULL,                                "$owner"},
    {1, "memory",      "unit=b",                            "$memory"},
    {1, "vcpu",        NULL,                                "$cpus"},
    {1, "os",          NULL,                                NULL},
    {2, "type",        "arch=x86_64 machine=q35",           "hvm"},
    {2, "kernel",      NULL,                                "$kernel"},
    {2, "initrd",      NULL,                                "$initrd"},
    {2, "cmdline",     NULL,                                "$cmdline"},
    {1, "features",    NULL,                                NULL},
    {2, "acpi",        NULL,                                NULL},
    {1, "cpu",         "mode=$cpu_mode",                    NULL},
    {1, "on_poweroff", NULL,                                "destroy"},
    {1, "on_reboot",   NULL,                                "destroy"}, /* its init is gone: it has ended */
    {1, "on_crash",    NULL,                                "destroy"},
    {1, "devices",     NULL,                                NULL},
    {2, "disk",        "type=file device=disk",             NULL},
    {3, "driver",      "name=qemu type=qcow2 cache=writeback discard=unmap", NULL},
    {3, "source",      "file=$disk",                        NULL},
    {3, "target",      "dev=vda bus=virtio",                NULL},
    {2, "serial",      "type=file",                         NULL},
    {3, "source",      "path=$console append=on",           NULL},
    {2, "channel",     "type=unix",                         NULL},
    {3, "target",      "type=virtio name=holt.guest",       NULL},
    {2, "channel",     "type=unix",                         NULL},
    {3, "target",      "type=virtio name=holt.power",       NULL},
    {2, "controller",  "type=usb model=none",               NULL},
    {2, "rng",         "model=virtio",                      NULL},
    {3, "backend",     "model=random",                      "/dev/urandom"},
    {2, "memballoon",  "model=none",                        NULL},
};
static const struct element volume_rows[] = {
    {0, "volume",       NULL,           NULL},
    {1, "name",         NULL,           "$name"},
    {1, "capacity",     "unit=bytes",   "$bytes"},
    {1, "allocation",   NULL,           "0"},
    {1, "target",       NULL,           NULL},
    {2, "format",       "type=$format", NULL},
};
static const struct element backing_rows[] = {
    {1, "backingStore", NULL,           NULL},
    {2, "path",         NULL,           "$backing"},
    {2, "format",       "type=qcow2",   NULL},
};
static const struct element pool_rows[] = {
    {0, "pool",   "type=dir", NULL},
    {1, "name",   NULL,       "$name"},
    {1, "target", NULL,       NULL},
    {2, "path",   NULL,       "$path"},
};
/* clang-format on */

static void add_escaped(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '<')
            buf_add_c(to, "&lt;");
        else if (s.p[i] == '&')
            buf_add_c(to, "&amp;");
        else if (s.p[i] == '\'')
            buf_add_c(to, "&apos;");
        else
            buf_add_char(to, s.p[i]);
    }
}

static void add_value(struct buf *to, struct str s, const struct value *values)
{
    if (s.n == 0 || s.p[0] != '$') {
        add_escaped(to, s);
        return;
    }
    for (; values->name; values++)
        if (str_eq_c(str_skip(s, 1), values->name)) {
            add_escaped(to, str_of(values->text));
            return;
        }
    assert(0 && "a description names a value that nobody gives");
}

static void add_attributes(struct buf *to, struct str list, const struct value *values)
{
    while (list.n > 0) {
        struct str rest, value, one = str_cut(list, ' ', &rest);
        struct str key = str_cut(one, '=', &value);

        buf_add_char(to, ' ');
        buf_add_str(to, key);
        buf_add_c(to, "='");
        add_value(to, value, values);
        buf_add_char(to, '\'');
        list = rest;
    }
}

/* Ends the elements that are open at this depth and below. */
static void end_elements(struct buf *to, const struct element **open, int *depth, int until)
{
    while (*depth > until)
        buf_printf(to, "</%s>", open[--*depth]->name);
}

static void describe(const struct element *rows, size_t n, const struct value *values,
                     struct buf *to)
{
    const struct element *open[8];
    int depth = rows[0].depth;

    for (size_t i = 0; i < n; i++) {
        const struct element *r = &rows[i];

        end_elements(to, open, &depth, r->depth);
        buf_printf(to, "<%s", r->name);
        add_attributes(to, str_of(r->attributes ? r->attributes : ""), values);
        buf_add_char(to, '>');
        if (r->text)
            add_value(to, str_of(r->text), values);
        open[depth++] = r;
    }
    end_elements(to, open, &depth, rows[0].depth);
}

void domain_describe(const struct domain_values *v, struct buf *to)
{
    const struct value values[] = {
        {"type", v->type},     {"cpu_mode", v->cpu_mode},
        {"name", v->name},     {"uuid", v->uuid},
        {"owner", v->owner},   {"memory", v->memory},
        {"cpus", v->cpus},     {"kernel", v->kernel},
        {"initrd", v->initrd}, {"cmdline", v->cmdline},
        {"disk", v->disk},     {"console", v->console},
        {NULL, NULL},
    };

    describe(domain_rows, ARRAY_LEN(domain_rows), values, to);
    buf_add_char(to, '\0');
}

void volume_describe(const char *name, const char *format, uint64_t bytes, const char *backing,
                     struct buf *to)
{
    char number[24];
    const struct value values[] = {{"name", name},
                                   {"format", format},
                                   {"bytes", number},
                                   {"backing", backing ? backing : ""},
                                   {NULL, NULL}};
    struct element rows[ARRAY_LEN(volume_rows) + ARRAY_LEN(backing_rows)];

    (void)snprintf(number, sizeof number, "%" PRIu64, bytes);
    memcpy(rows, volume_rows, sizeof volume_rows);
    memcpy(rows + ARRAY_LEN(volume_rows), backing_rows, sizeof backing_rows);
    describe(rows, backing ? ARRAY_LEN(rows) : ARRAY_LEN(volume_rows), values, to);
    buf_add_char(to, '\0');
}

void pool_describe(const char *name, const char *path, struct buf *to)
{
    const struct value values[] = {{"name", name}, {"path", path}, {NULL, NULL}};

    describe(pool_rows, ARRAY_LEN(pool_rows), values, to);
    buf_add_char(to, '\0');
}
