/* settings: lists the settings. */
#include "api/native/handlers.h"

void settings_list_run(struct request *r)
{
    struct jw w = request_json(r);

    conf_print_json(r->api->c.conf, w.to);
    request_send_json(r, 0);
}
