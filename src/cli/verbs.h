/* verbs: the run functions of verb_table, one file verb_<name>.c each. */
#pragma once

#include "cli/cli.h"

#define VERB_RUN(name)                                                                             \
    CHECKED int name(struct cli *c, const struct cmd *cmd, const json_t *args, struct err *e)

VERB_RUN(access_ca_verb_run);
VERB_RUN(approval_ask_run);
VERB_RUN(approval_watch_run);
VERB_RUN(attach_run);
VERB_RUN(audit_verify_run);
VERB_RUN(board_show_run);
VERB_RUN(build_vm_run);
VERB_RUN(vm_provision_run);
VERB_RUN(vm_destroy_run);
VERB_RUN(vm_reprovision_run);
VERB_RUN(vm_ssh_run);
VERB_RUN(loadout_resolve_run);
VERB_RUN(loadout_build_verb_run);
VERB_RUN(image_build_verb_run);
VERB_RUN(cat_run);
VERB_RUN(completion_run);
VERB_RUN(context_add_run);
VERB_RUN(context_ls_run);
VERB_RUN(context_rm_run);
VERB_RUN(context_use_run);
VERB_RUN(cp_run);
VERB_RUN(create_run);
VERB_RUN(each_run);
VERB_RUN(doctor_run);
VERB_RUN(down_run);
VERB_RUN(events_run);
VERB_RUN(exec_run);
VERB_RUN(help_run);
VERB_RUN(image_import_run);
VERB_RUN(image_pull_run);
VERB_RUN(secret_set_run);
VERB_RUN(kill_run);
VERB_RUN(link_run);
VERB_RUN(man_run);
VERB_RUN(port_forward_run);
VERB_RUN(project_put_run);
VERB_RUN(ps_run);
VERB_RUN(run_detached_run);
VERB_RUN(purge_run);
VERB_RUN(rm_run);
VERB_RUN(run_run);
VERB_RUN(session_attach_verb_run);
VERB_RUN(session_create_verb_run);
VERB_RUN(session_export_verb_run);
VERB_RUN(session_record_verb_run);
VERB_RUN(session_replay_verb_run);
VERB_RUN(session_screen_verb_run);
VERB_RUN(session_watch_verb_run);
VERB_RUN(shell_run);
VERB_RUN(ssh_run);
VERB_RUN(apply_run);
VERB_RUN(diff_run);
VERB_RUN(export_run);
VERB_RUN(playbook_verify_run);
VERB_RUN(snapshot_tree_run);
VERB_RUN(top_run);
VERB_RUN(version_run);
VERB_RUN(task_run_run);
VERB_RUN(task_logs_run);
VERB_RUN(task_schedule_run);
VERB_RUN(wait_run);
