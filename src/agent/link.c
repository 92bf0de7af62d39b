/* link: registers, reports, obeys; connects again whenever the stream has ended. */
#include "agent/link.h"

#include "agent/command.h"
#include "agent/report.h"
#include "agent/stream.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rnd.h"

#include <stdio.h>
#include <unistd.h>

#define AGAIN_FIRST_MS 500
#define AGAIN_MAX_MS 30000
#define REFUSED_MS 60000 /* more often would count as guessing */
#define BEAT_PRESET_MS 30000
#define GRACE_MAX_S 60

enum { /* the numbers of AgentMessage's members */
       UP_REGISTRATION = 1,
       UP_HEARTBEAT = 2,
       UP_STDOUT = 3,
       UP_STDERR = 4,
       UP_RESULT = 6,
       UP_METRICS = 7,
       UP_REPORT = 8,
       UP_RECONCILED = 9
};
enum { /* … and of ManagementMessage's */
       DOWN_ACK = 1,
       DOWN_COMMAND = 2,
       DOWN_CONFIG = 3,
       DOWN_SHUTDOWN = 4,
       DOWN_PING = 5,
       DOWN_STDIN = 6,
       DOWN_PTY = 7,
       DOWN_QUERY = 8,
       DOWN_RECONCILE = 9,
       DOWN_STORED = 101
};

static const struct link_self *self;
static int64_t again_ms; /* when to connect; 0: connected, or connecting */
static int64_t wait_ms;  /* of the next attempt after that */
static int64_t beat_ms;  /* when the next heartbeat is due; 0: not registered */
static int64_t interval_ms = BEAT_PRESET_MS;
static bool ends;
static int64_t grace_ms;

static void send_up(const struct agentic_agent_message *m)
{
    AUTO(buf_done) struct buf bytes = {0};

    pb_encode(&agentic_agent_message_pb, m, &bytes);
    stream_send(buf_str(&bytes));
}

/* --- up --- */

static void send_registration(void)
{
    AUTO(arena_done) struct arena a = {0};
    char hostname[256] = "", address[64];
    struct agentic_system_info system = {0};
    struct agentic_agent_registration q = {.agent_id = str_of(self->id),
                                           .profile = str_of(self->profile),
                                           .loadout = str_of(self->loadout),
                                           .instance_id = str_of(self->instance),
                                           .system = &system,
                                           .keeps_output = true};
    const struct agentic_agent_message m = {.payload_case = UP_REGISTRATION, .registration = &q};

    (void)gethostname(hostname, sizeof hostname - 1);
    stream_local(address, sizeof address);
    q.hostname = str_of(hostname);
    q.ip_address = str_of(address);
    report_system(&a, &system);
    send_up(&m);
}

static void send_beat(void)
{
    AUTO(arena_done) struct arena a = {0};
    struct agentic_metrics metrics = {.agent_id = str_of(self->id),
                                      .timestamp_ms = clock_wall_ms()};
    struct agentic_heartbeat q = {.agent_id = str_of(self->id), .timestamp_ms = clock_wall_ms()};
    struct agentic_agent_message m = {.payload_case = UP_METRICS, .metrics = &metrics};

    report_metrics(&a, &metrics);
    send_up(&m);
    report_heartbeat(&a, &q, commands_live() > 0);
    q.cpu_percent = metrics.cpu_percent;
    m = (struct agentic_agent_message){.payload_case = UP_HEARTBEAT, .heartbeat = &q};
    send_up(&m);
    beat_ms = clock_mono_ms() + interval_ms;
}

static void send_report(void)
{
    AUTO(arena_done) struct arena a = {0};
    struct agentic_session_report q = {.agent_id = str_of(self->id),
                                       .timestamp_ms = clock_wall_ms()};
    const struct agentic_agent_message m = {.payload_case = UP_REPORT, .session_report = &q};

    q.sessions_count = commands_report(&a, &q.sessions);
    send_up(&m);
}

bool link_takes(void)
{
    return beat_ms > 0 && stream_is_open() && !stream_is_full();
}

void link_output(struct str id, bool err, int64_t offset, struct str data)
{
    struct agentic_output_chunk q = {.stream_id = id,
                                     .data = data,
                                     .timestamp_ms = clock_wall_ms(),
                                     .has_offset = offset >= 0,
                                     .offset = (uint64_t)(offset < 0 ? 0 : offset)};
    struct agentic_agent_message m = {.payload_case = err ? UP_STDERR : UP_STDOUT};

    if (err)
        m.stderr = &q;
    else
        m.stdout = &q;
    send_up(&m);
}

void link_result(struct str id, int code, const char *failure, int64_t duration_ms)
{
    struct agentic_command_result q = {.command_id = id,
                                       .exit_code = code,
                                       .error = str_of(failure),
                                       .success = code == 0,
                                       .duration_ms = duration_ms};
    const struct agentic_agent_message m = {.payload_case = UP_RESULT, .command_result = &q};

    send_up(&m);
}

/* --- down --- */

static void on_ack(const struct agentic_registration_ack *q)
{
    bool counts = false;

    if (!q->accepted) {
        stream_abort("the server did not accept the registration");
        return;
    }
    for (size_t i = 0; i < q->config_count; i++)
        counts = counts || (str_eq_c(q->config[i].key, "output_stored") &&
                            str_eq_c(q->config[i].value, "true"));
    if (self->heartbeat_ms > 0)
        interval_ms = self->heartbeat_ms;
    else if (q->heartbeat_interval_seconds > 0)
        interval_ms = 1000LL * q->heartbeat_interval_seconds;
    log_info("registered", LOG_C("server", self->host), LOG_N("heartbeat_ms", interval_ms));
    wait_ms = AGAIN_FIRST_MS;
    commands_linked(counts);
    send_beat();
}

static void on_reconcile(const struct agentic_session_reconcile *q)
{
    struct agentic_session_reconcile_ack ack = {
        .agent_id = str_of(self->id),
        .timestamp_ms = clock_wall_ms(),
        .killed_session_ids = q->kill_session_ids,
        .killed_session_ids_count = q->kill_session_ids_count,
        .kept_session_ids = q->keep_session_ids,
        .kept_session_ids_count = q->keep_session_ids_count};
    struct agentic_agent_message m = {.payload_case = UP_RECONCILED};

    commands_end(q->kill_session_ids, q->kill_session_ids_count);
    m.session_reconcile_ack = &ack;
    send_up(&m);
}

static void on_shutdown(const struct agentic_shutdown_signal *q)
{
    log_info("the server asks this agent to end", LOG_S("reason", q->reason));
    ends = true;
    grace_ms = 1000LL * (q->grace_period_seconds < 0             ? 0
                         : q->grace_period_seconds > GRACE_MAX_S ? GRACE_MAX_S
                                                                 : q->grace_period_seconds);
}

static void obey(const struct agentic_management_message *m)
{
    switch (m->payload_case) {
    case DOWN_ACK:
        on_ack(m->registration_ack);
        break;
    case DOWN_COMMAND:
        commands_start(m->command);
        break;
    case DOWN_CONFIG: /* nothing of ours is configured from there */
        break;
    case DOWN_SHUTDOWN:
        on_shutdown(m->shutdown);
        break;
    case DOWN_PING:
        send_beat();
        break;
    case DOWN_STDIN:
        commands_input(m->stdin->command_id, m->stdin->data, m->stdin->eof);
        break;
    case DOWN_PTY:
        commands_control(m->pty_control);
        break;
    case DOWN_QUERY:
        send_report();
        break;
    case DOWN_RECONCILE:
        on_reconcile(m->session_reconcile);
        break;
    case DOWN_STORED:
        commands_stored(m->output_stored);
        break;
    default: /* newer than we are */
        break;
    }
}

static void on_message(struct str bytes)
{
    AUTO(arena_done) struct arena a = {0};
    struct agentic_management_message m;
    struct err e = {0};

    if (pb_decode(&agentic_management_message_pb, bytes, &a, &m, &e) < 0)
        stream_abort("the server sent a damaged message");
    else
        obey(&m);
}

/* --- the stream --- */

static void on_ended(const char *why, bool refused)
{
    int64_t wait = refused ? REFUSED_MS : wait_ms + (int64_t)(rnd_u64() % (uint64_t)wait_ms) / 4;

    log_warn(refused ? "the server refuses this agent" : "no link to the server", LOG_C("why", why),
             LOG_C("server", self->host), LOG_N("again_in_ms", wait));
    beat_ms = 0;
    again_ms = clock_mono_ms() + wait;
    wait_ms = wait_ms * 2 > AGAIN_MAX_MS ? AGAIN_MAX_MS : wait_ms * 2;
}

void link_init(const struct link_self *of)
{
    self = of;
    wait_ms = AGAIN_FIRST_MS;
    again_ms = clock_mono_ms();
}

int64_t link_tick(int64_t now_ms)
{
    static const struct stream_ops ops = {send_registration, on_message, commands_pump, on_ended};
    const struct stream_target to = {self->host, self->port, self->id, self->secret};

    if (again_ms > 0 && now_ms >= again_ms && !ends) {
        again_ms = 0;
        stream_open(&to, &ops);
    }
    if (beat_ms > 0 && now_ms >= beat_ms)
        send_beat();
    return again_ms > 0 ? again_ms : beat_ms > 0 ? beat_ms : now_ms + BEAT_PRESET_MS;
}

bool link_wants_end(int64_t *ret_grace_ms)
{
    *ret_grace_ms = grace_ms;
    return ends;
}

void link_goodbye(void)
{
    stream_finish();
}
