/* out: writes results to standard output and notes to standard error. */
#include "cli/cli.h"

#include "cli/term.h"
#include "proto/yaml.h"

#include <errno.h>
#include <unistd.h>

/* After a broken pipe the rest of the output is not needed: `holt events | head`. */
void cli_write(struct str s)
{
    while (s.n > 0) {
        ssize_t n = write(STDOUT_FILENO, s.p, s.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EPIPE)
            _exit(0);
        if (n < 0) {
            (void)fprintf(stderr, "holt: write to standard output: %s\n", strerror(errno));
            _exit(1);
        }
        s = str_skip(s, (size_t)n);
    }
}

void cli_note(const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0}, line = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    buf_add_c(&line, "holt: ");
    print_safe(&line, buf_str(&text));
    buf_add_char(&line, '\n');
    (void)!write(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

int cli_print(const struct cli *c, const json_t *v, const struct print_spec *spec, struct err *e)
{
    AUTO(buf_done) struct buf out = {0};
    struct print_spec shown = *spec;

    (void)e;
    shown.color = c->color;
    shown.width = term_width();
    if (c->format == OUT_JSON)
        print_json(&out, v);
    else if (c->format == OUT_YAML)
        yaml_write(&out, v);
    else
        print_table(&out, v, &shown);
    cli_write(buf_str(&out));
    return 0;
}
