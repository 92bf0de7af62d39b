/* role: the permissions of each role. */
#include "core/identity/identity.h"

#include <stdio.h>

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_NONE] = "none",         [ROLE_OBSERVER] = "observer", [ROLE_AGENT] = "agent",
    [ROLE_OPERATOR] = "operator", [ROLE_ADMIN] = "admin",
};

#define MAY(perm) (1U << (perm))

/* An observer sees lists and states and changes nothing; core lets an agent touch only its own
 * objects (owner.h). */
#define SANDBOX_ALL (MAY(PERM_SANDBOX_READ) | MAY(PERM_SANDBOX_CONTENT) | MAY(PERM_SANDBOX_WRITE))

/* An agent works with the team as itself (core/team/team.c); only people pause, revoke and
 * approve. */
#define TEAM_WORK                                                                                  \
    (MAY(PERM_TEAM_READ) | MAY(PERM_TEAM_CONTENT) | MAY(PERM_TEAM_WRITE) | MAY(PERM_TEAM_REPORT))
#define TEAM_ALL (TEAM_WORK | MAY(PERM_TEAM_RULE))

/* Anybody may ask people, and follow its own questions (core/approval/approval.h). */
#define ASKS (MAY(PERM_ASK) | MAY(PERM_ASK_READ))

/* The permissions of each role.  An agent is not trusted with the installation's state: it sees
 * itself. */
static const unsigned role_perms[ROLE_COUNT] = {
    [ROLE_NONE] = MAY(PERM_NONE),
    [ROLE_AGENT] = MAY(PERM_NONE) | MAY(PERM_SELF) | SANDBOX_ALL | TEAM_WORK | ASKS,
    [ROLE_OBSERVER] = MAY(PERM_NONE) | MAY(PERM_SELF) | MAY(PERM_READ) | MAY(PERM_EVENTS) |
                      MAY(PERM_LOGIN) | MAY(PERM_SANDBOX_READ) | MAY(PERM_SECRET_READ) |
                      MAY(PERM_TEAM_READ) | MAY(PERM_ASK_READ),
    [ROLE_OPERATOR] = MAY(PERM_NONE) | MAY(PERM_SELF) | MAY(PERM_READ) | MAY(PERM_EVENTS) |
                      MAY(PERM_AUDIT) | MAY(PERM_LOGIN) | SANDBOX_ALL | MAY(PERM_IMAGE_WRITE) |
                      MAY(PERM_SECRETS) | MAY(PERM_SECRET_READ) | TEAM_ALL | ASKS,
    [ROLE_ADMIN] = MAY(PERM_NONE) | MAY(PERM_SELF) | MAY(PERM_READ) | MAY(PERM_EVENTS) |
                   MAY(PERM_AUDIT) | MAY(PERM_TOKENS) | MAY(PERM_LOGIN) | MAY(PERM_ADMIN) |
                   SANDBOX_ALL | MAY(PERM_IMAGE_WRITE) | MAY(PERM_SECRETS) | MAY(PERM_SECRET_READ) |
                   TEAM_ALL | ASKS,
};

/* Permissions that change nothing but what is known about the caller. */
#define SAFE                                                                                       \
    (MAY(PERM_NONE) | MAY(PERM_SELF) | MAY(PERM_READ) | MAY(PERM_EVENTS) | MAY(PERM_AUDIT) |       \
     MAY(PERM_SANDBOX_READ) | MAY(PERM_SANDBOX_CONTENT) | MAY(PERM_SECRET_READ) |                  \
     MAY(PERM_TEAM_READ) | MAY(PERM_TEAM_CONTENT) | MAY(PERM_TEAM_REPORT) | MAY(PERM_ASK_READ))

/* A tenant has sandboxes, volumes, images and secrets.  Everything else (events, settings, tokens,
 * the team) shows other callers' data, and is for those without a tenant. */
#define OF_TENANT                                                                                  \
    (MAY(PERM_NONE) | MAY(PERM_SELF) | MAY(PERM_LOGIN) | SANDBOX_ALL | MAY(PERM_IMAGE_WRITE) |     \
     MAY(PERM_SECRETS) | MAY(PERM_SECRET_READ) | ASKS)

/* Additional permissions of an observer whose token has `content`. */
#define CONTENT (MAY(PERM_SANDBOX_CONTENT) | MAY(PERM_TEAM_CONTENT))

#define INSIDE "sandbox/"

const struct principal principal_system = {.role = ROLE_ADMIN, .actor = "system"};

struct principal principal_kept(enum role role, const char *owner, const char *tenant,
                                const char *agent)
{
    struct principal p = {.role = role};

    (void)snprintf(p.actor, sizeof p.actor, "%s", owner);
    (void)snprintf(p.owner, sizeof p.owner, "%s", owner);
    (void)snprintf(p.tenant, sizeof p.tenant, "%s", tenant);
    (void)snprintf(p.agent, sizeof p.agent, "%s", agent);
    return p;
}

struct principal principal_of(const struct token *t)
{
    struct principal p = {.role = t->role, .content = t->content, .token = t};

    (void)snprintf(p.actor, sizeof p.actor, "token/%s", t->id);
    (void)snprintf(p.owner, sizeof p.owner, "token/%s", t->root[0] ? t->root : t->id);
    (void)snprintf(p.agent, sizeof p.agent, "%s", t->agent ? t->agent : "");
    (void)snprintf(p.tenant, sizeof p.tenant, "%s", t->tenant ? t->tenant : "");
    (void)snprintf(p.person, sizeof p.person, "%s", t->person ? t->person : "");
    return p;
}

const char *principal_owner(const struct principal *p)
{
    return p->owner[0] ? p->owner : p->actor;
}

bool principal_may(const struct principal *p, enum perm perm)
{
    if (p->tenant[0] && !(OF_TENANT & MAY(perm)))
        return false;
    return role_may(p->role, perm) ||
           (p->role == ROLE_OBSERVER && p->content && (CONTENT & MAY(perm)));
}

struct principal principal_inside(const char *sandbox)
{
    struct principal p = {.role = ROLE_AGENT};

    (void)snprintf(p.actor, sizeof p.actor, INSIDE "%s", sandbox);
    return p;
}

bool principal_is_inside(const struct principal *p)
{
    return str_starts(str_of(p->actor), STR(INSIDE));
}

struct str principal_sandbox(const struct principal *p)
{
    return str_skip(str_of(p->actor), strlen(INSIDE));
}

const char *role_name(enum role r)
{
    assert(r < ROLE_COUNT);
    return role_names[r];
}

bool role_parse(struct str s, enum role *ret)
{
    for (int r = ROLE_OBSERVER; r < ROLE_COUNT; r++) {
        if (!str_eq_c(s, role_names[r]))
            continue;
        *ret = (enum role)r;
        return true;
    }
    return false;
}

bool perm_is_safe(enum perm p)
{
    assert(p < PERM_COUNT);
    return SAFE & MAY(p);
}

bool role_may(enum role r, enum perm p)
{
    assert(r < ROLE_COUNT && p < PERM_COUNT);
    return role_perms[r] & MAY(p);
}
