/* link: agents on other machines, over AgentService (api/agentic/v1/agentic.proto): Connect in
 * link.c, Exec in dispatch.c.  Thread: the loop's. */
#pragma once

#include "api/agentic.pb.h"
#include "api/dialects/agentic/agentic.h"

void agentic_connect_begin(struct request *r);
void agentic_connect(struct request *r, const void *in);
void agentic_dispatch(struct request *r, const void *in);
void agentic_links_tick(struct api *a, struct agentic *g);
void agentic_links_end(struct agentic *g);
