/* A dialect of one path, its settings, and a runtime: what plugging one in takes. */
#include "api/dialects/agentbox/agentbox.h"
#include "api/dialects/hub/hub.h"
#include "api/dialects/sbx/sbx.h"
#include "conf/setting.h"
#include "driver/fake/fake.h"
#include "driver/table.h"

/* --- the settings --- */

struct toy_settings {
    char *greeting;
};
static const struct setting toy_rows[] = {
    {.f = {.name = "toy_greeting",
           .type = OP_STR,
           .offset = offsetof(struct toy_settings, greeting),
           .preset = "hello",
           .max = 64,
           .text = "What the toy says."},
     .alias = (const struct setting_alias[]){{"TOY_GREETING"}, {NULL}}},
};
static const struct setting_group toy_group = {
    .name = "toy", .size = sizeof(struct toy_settings), .rows = toy_rows, .count = 1};
const struct setting_group *const setting_groups[] = {
    &agentbox_setting_group,
    &sbx_setting_group,
    &toy_group,
    NULL,
};

/* --- the dialect --- */

static void toy_run(struct request *r)
{
    const struct toy_settings *s = conf_group(r->api->c.conf, &toy_group);

    request_send(r, 200, "text/plain", str_of(s->greeting));
}
static void toy_fail(struct request *r, int status, const struct err *e)
{
    request_send(r, status, "text/plain", str_of(e->msg));
}
static const struct route toy_routes[] = {{"GET", "/toy", "toy.run", PERM_READ, toy_run}};
static const struct dialect dialect_toy = {
    .name = "toy",
    .routes = toy_routes,
    .route_count = ARRAY_LEN(toy_routes),
    .roots = (const char *const[]){"toy", NULL},
    .fail = toy_fail,
    .listen = (const char *const[]){"127.0.0.1:7070", NULL},
};
const struct dialect *const dialect_table[] = {
    &dialect_agentbox, &dialect_hub, &dialect_sbx, &dialect_toy, NULL,
};

/* --- the runtime: the fake one by another name --- */

static struct driver_ops driver_toy;

static int toy_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    if (driver_fake.open(c, ret, e) < 0)
        return -1;
    (*ret)->ops = &driver_toy;
    return 0;
}

/* A copy of another row cannot be an initializer. */
__attribute__((constructor)) static void toy_fill(void)
{
    driver_toy = driver_fake;
    driver_toy.name = "toy";
    driver_toy.open = toy_open;
}

const struct driver_ops *const driver_table[] = {&driver_fake, &driver_toy, NULL};
