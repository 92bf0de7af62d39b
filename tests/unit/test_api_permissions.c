#include "api/native/handlers.h"
#include "ops/token.h"
#include "unit.h"

/* Who may do what, written out by hand: a change of a role or of an operation's permission must be
 * made here as well, on purpose.  n: without a token, o: observer, g: agent, p: operator, a: admin.
 */
/* clang-format off */
static const struct {
    const char *op, *allowed;
} matrix[] = {
    {"server.info",   "opa"},
    {"settings.list", "opa"},
    {"healthz",       "nogpa"},
    {"readyz",        "nogpa"},
    {"metrics",       "opa"},
    {"openapi",       "nogpa"},
    {"token.create",  "a"},
    {"token.list",    "a"},
    {"token.get",     "a"},
    {"token.revoke",  "a"},
    {"token.self",    "ogpa"},
    {"event.list",    "opa"},
    {"audit.list",    "pa"},
    {"audit.verify",  "pa"},
    {"login",         "nogpa"},
    {"login.code",    "opa"},
    {"login.oidc",    "nogpa"},
    {"login.oidc_callback", "nogpa"},
    {"logout",        "ogpa"},
    /* an agent: its own sandboxes only; core/identity/owner.h */
    {"sandbox.list",    "ogpa"},
    {"sandbox.get",     "ogpa"},
    {"sandbox.stats",   "ogpa"},
    {"sandbox.stats_list", "ogpa"},
    {"sandbox.logs",    "gpa"},
    {"exec.list",       "ogpa"},
    {"exec.get",        "ogpa"},
    {"exec.output",     "gpa"},
    {"exec.attach",     "gpa"},
    {"file.read",       "gpa"},
    {"file.stat",       "gpa"},
    {"file.list",       "gpa"},
    {"file.watch",      "gpa"},
    {"archive.read",    "gpa"},
    {"sandbox.create",  "gpa"},
    {"sandbox.update",  "gpa"},
    {"sandbox.destroy", "gpa"},
    {"sandbox.start",   "gpa"},
    {"sandbox.stop",    "gpa"},
    {"sandbox.restart", "gpa"},
    {"sandbox.reprovision", "gpa"},
    {"sandbox.crashes", "ogpa"},
    {"sandbox.crash_reset", "gpa"},
    {"sandbox.pause",   "gpa"},
    {"sandbox.resume",  "gpa"},
    {"run",             "gpa"},
    {"run.attach",      "gpa"},
    {"exec.create",     "gpa"},
    {"exec.signal",     "gpa"},
    {"exec.stdin",      "gpa"},
    {"exec.resize",     "gpa"},
    {"exec.cancel",     "gpa"},
    {"exec.screen",     "gpa"},
    {"session.create",  "gpa"},
    {"session.list",    "ogpa"},
    {"session.list_all", "ogpa"},
    {"session.get",     "ogpa"},
    {"session.members", "ogpa"},
    {"session.screen",  "gpa"},
    {"session.send",    "gpa"},
    {"session.resize",  "gpa"},
    {"session.kill",    "gpa"},
    {"session.attach",  "gpa"},
    {"session.recording", "gpa"},
    {"session.search",  "gpa"},
    {"exec.wait",       "ogpa"},
    {"file.write",      "gpa"},
    {"file.remove",     "gpa"},
    {"file.mkdir",      "gpa"},
    {"file.move",       "gpa"},
    {"archive.write",   "gpa"},
    {"port.proxy",      "gpa"},
    {"port.tunnel",     "gpa"},
    {"port.preview",    "gpa"},
    {"image.list",      "ogpa"},
    {"image.get",       "ogpa"},
    {"image.pull",      "pa"},
    {"image.import",    "pa"},
    {"image.remove",    "pa"},
    {"access.ca",       "ogpa"},
    {"access.krl",      "nogpa"},
    {"access.request",  "gpa"},
    {"access.list",     "ogpa"},
    {"access.get",      "ogpa"},
    {"access.revoke",   "gpa"},
    {"access.open",     "gpa"},
    {"access.close",    "gpa"},
    {"access.sessions", "ogpa"},
    {"host.list",       "opa"},
    {"host.get",        "opa"},
    {"host.drain",      "a"},
    {"prune",           "a"},
    {"df",              "opa"},
    {"policy.create",   "pa"},
    {"policy.list",     "ogpa"},
    {"policy.get",      "ogpa"},
    {"policy.update",   "pa"},
    {"policy.remove",   "pa"},
    {"task_run.create",    "gpa"},
    {"task_run.list",      "ogpa"},
    {"task_run.get",       "ogpa"},
    {"task_run.cancel",    "gpa"},
    {"task_run.retry",     "gpa"},
    {"task_run.logs",      "gpa"},
    {"task_run.artifacts", "ogpa"},
    {"task_run.artifact",  "gpa"},
    {"task_run.usage", "ogpa"},
    {"task_schedule.create", "gpa"},
    {"task_schedule.list",   "ogpa"},
    {"task_schedule.remove", "gpa"},
    {"snapshot.create", "gpa"},
    {"snapshot.list",   "ogpa"},
    {"snapshot.get",    "ogpa"},
    {"snapshot.remove", "gpa"},
    {"snapshot.restore", "gpa"},
    {"fork",            "gpa"},
    {"change.diff",     "gpa"},
    {"sandbox.diff",    "gpa"},
    {"fork.apply",      "gpa"},
    {"change.export",   "gpa"},
    {"fork.keep",       "gpa"},
    {"image.commit",    "pa"},
    {"target.create", "pa"},
    {"target.list", "ogpa"},
    {"target.get", "ogpa"},
    {"target.check", "gpa"},
    {"target.remove", "pa"},
    {"playbook.create", "gpa"},
    {"playbook.generate", "gpa"},
    {"playbook.list", "ogpa"},
    {"playbook.get", "gpa"},
    {"playbook.export", "gpa"},
    {"playbook.remove", "gpa"},
    {"playbook.task_add", "gpa"},
    {"playbook.task_change", "gpa"},
    {"playbook.task_remove", "gpa"},
    {"playbook.reorder", "gpa"},
    {"playbook.apply", "gpa"},
    {"playbook.publish", "gpa"},
    {"rollout.list", "ogpa"},
    {"rollout.get", "gpa"},
    {"rollout.logs", "gpa"},
    {"rollout.cancel", "gpa"},
    {"rollout.rollback", "pa"},
    {"build.list", "ogpa"},
    {"build.get", "ogpa"},
    {"build.log", "gpa"},
    {"build.cancel", "pa"},
    {"image.build", "pa"},
    {"loadout.list", "ogpa"},
    {"loadout.get", "ogpa"},
    {"loadout.resolve", "ogpa"},
    {"loadout.build", "pa"},
    {"loadout.registry", "ogpa"},
    {"loadout.apply", "pa"},
    {"template.create", "gpa"},
    {"template.list",   "ogpa"},
    {"template.get",    "ogpa"},
    {"template.remove", "gpa"},
    {"volume.create",   "gpa"},
    {"volume.list",     "ogpa"},
    {"volume.get",      "ogpa"},
    {"volume.update",   "gpa"},
    {"volume.remove",   "gpa"},
    {"quota.list",      "ogpa"},
    {"remote.list",     "ogpa"},
    {"remote.secrets",  "opa"},
    {"remote.add",      "pa"},
    {"remote.rotate",   "pa"},
    {"remote.revoke",   "pa"},
    {"secret.create",   "pa"},
    {"secret.set",      "pa"},
    {"secret.list",     "opa"},
    {"secret.get",      "opa"},
    {"secret.remove",   "pa"},
    {"ca",              "opa"},
    {"rule.list",       "opa"},
    {"rule.remove",     "pa"},
    /* an agent: as itself; the rules of core/team/agent.h, board.h, message.h say the rest */
    {"agent.register", "gpa"},
    {"agent.list", "ogpa"},
    {"agent.get", "ogpa"},
    {"agent.update", "gpa"},
    {"agent.remove", "gpa"},
    {"agent.heartbeat", "gpa"},
    {"agent.default_mode", "pa"},
    {"agent.checkpoint", "gpa"},
    {"agent.checkpoints", "ogpa"},
    {"agent.pause", "pa"},
    {"agent.resume", "pa"},
    {"agent.revoke", "pa"},
    {"agent.revocation", "ogpa"},
    {"agent.ack", "gpa"},
    {"agent.revocations", "ogpa"},
    {"message.send", "gpa"},
    {"message.inbox", "ogpa"},
    {"message.ack", "gpa"},
    {"message.history", "ogpa"},
    {"message.graph", "ogpa"},
    {"approval.ask", "gpa"},
    {"approval.cancel", "gpa"},
    {"approval.watch", "ogpa"},
    {"approval.answer", "pa"},
    {"approval.answers", "pa"},
    {"webhook.add", "a"},
    {"webhook.list", "a"},
    {"webhook.remove", "a"},
    {"webhook.test", "a"},
    {"webhook.deliveries", "a"},
    {"gate.add", "pa"},
    {"gate.list", "opa"},
    {"gate.remove", "pa"},
    {"grant.list", "ogpa"},
    {"grant.revoke", "pa"},
    {"approval.list", "ogpa"},
    {"approval.get", "ogpa"},
    {"approval.approve", "pa"},
    {"approval.deny", "pa"},
    {"project.create", "gpa"},
    {"project.list", "ogpa"},
    {"project.get", "ogpa"},
    {"project.remove", "gpa"},
    {"project.join", "gpa"},
    {"project.limit", "gpa"},
    {"project.metrics", "ogpa"},
    {"project.file.read", "gpa"},
    {"project.file.write", "gpa"},
    {"project.file.remove", "gpa"},
    {"project.file.list", "ogpa"},
    {"task.create", "gpa"},
    {"task.list", "ogpa"},
    {"task.get", "ogpa"},
    {"task.history", "ogpa"},
    {"task.ready", "ogpa"},
    {"task.claim", "gpa"},
    {"task.assign", "gpa"},
    {"task.unassign", "gpa"},
    {"task.move", "gpa"},
    {"task.review", "gpa"},
};
static const struct {
    enum role role;
    char letter;
} roles[] = {
    {ROLE_NONE, 'n'}, {ROLE_OBSERVER, 'o'}, {ROLE_AGENT, 'g'}, {ROLE_OPERATOR, 'p'}, {ROLE_ADMIN, 'a'},
};
/* clang-format on */

static const char *expected(const char *op)
{
    for (size_t i = 0; i < ARRAY_LEN(matrix); i++)
        if (strcmp(matrix[i].op, op) == 0)
            return matrix[i].allowed;
    return NULL;
}

static void every_role_may_what_the_matrix_says(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(roles), ROLE_COUNT);
    assert_int_equal(ARRAY_LEN(matrix), op_count);
    for (size_t i = 0; i < op_count; i++) {
        const char *allowed = expected(op_table[i]->name);

        if (!allowed)
            fail_msg("operation '%s' is not in the matrix", op_table[i]->name);
        for (size_t k = 0; k < ARRAY_LEN(roles); k++)
            if (role_may(roles[k].role, op_table[i]->perm) != !!strchr(allowed, roles[k].letter))
                fail_msg("operation '%s', role %s", op_table[i]->name, role_name(roles[k].role));
    }
}

static bool is_said_while_revoked(const char *op)
{
    static const char *const said[] = {
        "login.oidc",      "login.oidc_callback", "login",     "logout",         "agent.register",
        "agent.heartbeat", "agent.checkpoint",    "agent.ack", "loadout.resolve"};

    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        if (strcmp(op, said[i]) == 0)
            return true;
    return false;
}

/* A GET may act too (a tunnel, a server inside); what is no GET and yet safe stands here. */
static void a_revoked_agent_keeps_what_is_safe(void **state)
{
    (void)state;
    for (size_t i = 0; i < op_count; i++) {
        const struct op *op = op_table[i];
        bool get = strcmp(op->method, "GET") == 0 || strcmp(op->method, "HEAD") == 0;

        if (!get && perm_is_safe(op->perm) != is_said_while_revoked(op->name))
            fail_msg("operation '%s'", op->name);
        if (get && role_may(ROLE_AGENT, op->perm) && op->perm != PERM_SANDBOX_WRITE &&
            !perm_is_safe(op->perm))
            fail_msg("operation '%s'", op->name);
    }
}

static void only_admins_hold_the_admin_permissions(void **state)
{
    (void)state;
    for (int r = 0; r < ROLE_COUNT; r++) {
        assert_int_equal(role_may((enum role)r, PERM_ADMIN), r == ROLE_ADMIN);
        assert_int_equal(role_may((enum role)r, PERM_TOKENS), r == ROLE_ADMIN);
        assert_true(role_may((enum role)r, PERM_NONE));
        assert_int_equal(role_may((enum role)r, PERM_SELF), r != ROLE_NONE);
    }
}

static void every_operation_has_one_handler(void **state)
{
    (void)state;
    assert_int_equal(op_handler_count, op_count);
    for (size_t i = 0; i < op_count; i++) {
        size_t found = 0;

        for (size_t k = 0; k < op_handler_count; k++)
            found += op_handlers[k].op == op_table[i] && op_handlers[k].run;
        if (found != 1)
            fail_msg("operation '%s' has %zu handlers", op_table[i]->name, found);
    }
}

static void names_of_roles_agree(void **state)
{
    enum role r;

    (void)state;
    for (size_t i = 0; op_roles[i]; i++) {
        assert_true(role_parse(str_of(op_roles[i]), &r));
        assert_string_equal(role_name(r), op_roles[i]);
    }
    assert_false(role_parse(STR("none"), &r));
    assert_false(role_parse(STR("Admin"), &r));
    assert_false(role_parse(STR(""), &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_role_may_what_the_matrix_says),
        cmocka_unit_test(a_revoked_agent_keeps_what_is_safe),
        cmocka_unit_test(only_admins_hold_the_admin_permissions),
        cmocka_unit_test(every_operation_has_one_handler),
        cmocka_unit_test(names_of_roles_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
