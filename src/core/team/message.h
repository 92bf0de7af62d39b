/* message: store-and-forward mail between agents (and people).
 *
 * A message is unread until it is acknowledged.  One to '*' is kept there and copied to every
 * registered agent but its sender.  Content with external URLs (message_is_safe) is refused; so is
 * more than conf.message_rate a minute.  A full inbox drops its oldest acknowledged message ('*':
 * the oldest), named in the new one's event; if there is none, the sender is refused.  Thread,
 * ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/agent.h"

struct message {
    struct str id, from, to, type, content;
    bool delivered, acknowledged;
    int64_t sent_ms;
};
struct message_list {
    struct message *v;
    size_t n;
};

/* Whether it has no URLs except to this machine, the team's network (172.28.0.0/16) and names
 * without dots.  Covers any scheme, and any spelling of a host that browsers understand. */
bool message_is_safe(struct str content);
/* m's from, to, type and content are the input; with ERR_LIMIT t->retry_ms is when to retry. */
CHECKED int message_send(struct team *t, struct message *m, struct err *e);
/* unread: the oldest unread ones, unchanged; else the newest `limit`, which then count as
 * delivered.  Both oldest first. */
CHECKED int message_inbox(struct team *t, struct str name, bool unread, int64_t limit,
                          struct message_list *ret, struct err *e);
CHECKED int message_acknowledge(struct team *t, struct str id, struct err *e);
CHECKED int message_history(struct team *t, struct str a, struct str b, int64_t limit,
                            struct message_list *ret, struct err *e); /* newest first */

struct message_edge {
    struct str from, to;
    int64_t count;
};
struct message_graph {
    struct agent_list nodes;
    struct message_edge *edges;
    size_t edge_count;
};
CHECKED int message_graph(struct team *t, struct message_graph *ret, struct err *e);
