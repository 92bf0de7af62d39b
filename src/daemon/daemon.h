/* daemon: holtd from its settings to its shutdown: state directory, store, listeners, signals.
 * Thread: the loop's. */
#pragma once

#include "conf/conf.h"

struct conf_sources;

/* Runs until a signal ends it.  0: it ended on request; -1: start-up or shutdown failed.  Takes the
 * settings over. */
CHECKED int daemon_run(struct config *conf, const struct conf_sources *from, struct err *e);
