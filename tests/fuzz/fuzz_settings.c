#include "conf/conf.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says what the rest is: a settings file, an environment file, one variable, or one
 * flag.  A configuration that loads can be printed. */
static int load(char **argv, int argc, char **env)
{
    struct conf_sources from = {.argc = argc, .argv = argv, .environ = env};
    AUTO(config_free) struct config *c = NULL;
    AUTO(mem_free) char *text = NULL;
    AUTO(buf_done) struct buf b = {0};
    struct err e = {0};
    int r;

    conf_set_runtimes((const char *const[]){"plain", NULL});
    r = conf_load(&from, &c, &text, &e);

    if (r < 0) {
        assert(e.msg[0]);
        return r;
    }
    if (!c)
        return r;
    conf_print_json(c, &b);
    conf_print_yaml(c, &b);
    assert(c->listen.n > 0);
    return conf_reload(c, &from, &e);
}

static int load_file(const char *flag, struct str content)
{
    char name[] = "holtd", path[64], option[16];
    char *argv[] = {name, option, path, NULL}, *env[] = {NULL};
    AUTO(fd_close) int fd = memfd_create("settings", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, content.p, content.n) < 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)snprintf(option, sizeof option, "%s", flag);
    return load(argv, 3, env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(mem_free) char *text = NULL;
    char name[] = "holtd";
    struct str rest;

    if (size == 0)
        return 0;
    rest = str_make(data + 1, size - 1);
    if (data[0] == 'y')
        return load_file("--config", rest), 0;
    if (data[0] == 'e')
        return load_file("--env-file", rest), 0;
    text = xstrndup(rest.p, rest.n);
    if (data[0] == 'v')
        (void)load((char *[]){name, NULL}, 1, (char *[]){text, NULL});
    else if (strncmp(text, "--config", 8) != 0 && strncmp(text, "--env-file", 10) != 0)
        (void)load((char *[]){name, text, NULL}, 2, (char *[]){NULL});
    return 0;
}
