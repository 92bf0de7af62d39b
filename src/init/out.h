/* out: the network of a machine without an interface (base/ways.h): connections and DNS queries of
 * its programs end here, and each becomes a channel to holtd, which hands it to holt-egress.  Where
 * sandboxes share the host's kernel, holt-egress has these listeners itself. */
#pragma once

#include "base/err.h"

CHECKED int out_open(struct err *e); /* before any command could take the ports */
