#include "api/dialects/agentbox/agentbox.h"

/* In the order of the service; the printed rows are agentbox_methods. */
enum { CREATE, DESTROY, GET, LIST, EXEC, EXEC_STREAM, WRITE, READ, PIP };

#define METHOD(at, text, needs, function, ...)                                                     \
    {.name = text, .perm = needs, .pb = &agentbox_methods[at], .run = function, __VA_ARGS__}

const struct rpc_method agentbox_rpcs[] = {
    METHOD(CREATE, "agentbox.create_session", PERM_SANDBOX_WRITE, agentbox_create_session),
    METHOD(DESTROY, "agentbox.destroy_session", PERM_SANDBOX_WRITE, agentbox_destroy_session),
    METHOD(GET, "agentbox.get_session", PERM_SANDBOX_READ, agentbox_get_session),
    METHOD(LIST, "agentbox.list_sessions", PERM_SANDBOX_READ, agentbox_list_sessions),
    METHOD(EXEC, "agentbox.exec", PERM_SANDBOX_WRITE, agentbox_exec, .large = true),
    METHOD(EXEC_STREAM, "agentbox.exec_stream", PERM_SANDBOX_WRITE, agentbox_exec_stream,
           .large = true),
    METHOD(WRITE, "agentbox.write_file", PERM_SANDBOX_WRITE, agentbox_write_file, .large = true),
    METHOD(READ, "agentbox.read_file", PERM_SANDBOX_CONTENT, agentbox_read_file),
    METHOD(PIP, "agentbox.pip_install", PERM_SANDBOX_WRITE, agentbox_pip_install),
};
const size_t agentbox_rpc_count = ARRAY_LEN(agentbox_rpcs);
