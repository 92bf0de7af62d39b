#include "api/handlers.h"

void settings_list_run(struct request *r)
{
    AUTO(buf_done) struct buf list = {0};
    struct jw w = request_json(r);

    conf_print_json(r->api->c.conf, &list);
    jw_object(&w);
    jw_key(&w, "settings");
    jw_raw(&w, buf_str(&list));
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}
