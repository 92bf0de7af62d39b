/* template: completes a request's body by the template that it names, before it is decoded. */
#pragma once

#include "api/request.h"

/* Fills the body from the template and the loadout that it names.
 * Fields of the body are stronger than the template's, of maps each key; those that the operation
 * does not have are left out.  0 without a template. */
CHECKED int template_apply(const struct request *r, const struct op *op, json_t *body,
                           struct err *e);
