/* notes: warnings about a new sandbox: another image, limits that are not enforced. */
#include "cli/notes.h"

#include "proto/json.h"

static void note_image(const json_t *sandbox, const json_t *args)
{
    const char *asked = args_str(args, "image"), *got = args_str(sandbox, "image");

    if (asked && got && strcmp(got, "host") == 0 && strcmp(asked, "host") != 0)
        cli_note("warning: '%s' means the host's own files here (setting image_aliases); `holt "
                 "image pull %s` downloads the image",
                 asked, asked);
}

/* Lists requested limits that are not enforced: "--memory, --pids". */
static void note_limits(const json_t *unenforced)
{
    static const struct {
        const char *name, *flag;
    } limits[] = {{"memory_bytes", "--memory"},
                  {"cpu_millis", "--cpus"},
                  {"pids", "--pids"},
                  {"disk_bytes", "--disk"},
                  {"nofile", "--nofile"}};
    AUTO(buf_done) struct buf flags = {0};

    for (size_t i = 0; i < json_array_size(unenforced); i++) {
        const char *name = json_string_value(json_array_get(unenforced, i));

        for (size_t k = 0; name && k < ARRAY_LEN(limits); k++)
            if (strcmp(name, limits[k].name) == 0)
                buf_printf(&flags, "%s%s", buf_len(&flags) ? ", " : "", limits[k].flag);
    }
    if (buf_len(&flags) > 0)
        cli_note("warning: this host cannot enforce %s; `holt doctor` says what it needs",
                 buf_cstr(&flags));
}

void notes_sandbox(const json_t *sandbox, const json_t *args)
{
    note_image(sandbox, args);
    note_limits(json_object_get(sandbox, "unenforced"));
}
