/* table: the dialects of this build, one row each. */
#include "api/dialects/a2a/a2a.h"
#include "api/dialects/agentbox/agentbox.h"
#include "api/dialects/agentic/agentic.h"
#include "api/dialects/dialect.h"
#include "api/dialects/fluid/fluid.h"
#include "api/dialects/hub/hub.h"
#include "api/dialects/k8s/k8s.h"
#include "api/dialects/sbx/sbx.h"

const struct dialect *const dialect_table[] = {
    &dialect_a2a, &dialect_agentbox, &dialect_agentic, &dialect_fluid,
    &dialect_hub, &dialect_k8s,      &dialect_sbx,     NULL,
};
