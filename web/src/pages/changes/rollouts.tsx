// Rollouts: a playbook on its way to a target, from the check over the approval to its output and, if need be, back.
import { useEffect } from "preact/hooks";
import { call, pathOf } from "../../api/client";
import type { Rollout } from "../../api/types";
import { may } from "../../live/session";
import { approvals, need, rollouts } from "../../live/store";
import { Log } from "../../parts/log";
import { act } from "../../parts/notices";
import { Empty, Loaded, Loading, State, Time } from "../../parts/ui";
import { link } from "../../router";
import { text } from "../../text";
import { ApprovalCard } from "../approvals/card";

const RAN = new Set(["applying", "succeeded", "failed", "rolling_back", "rolled_back"]);

function Question({ of: r }: { of: Rollout }) {
  const a = r.approval && may("approvalList") ? need(approvals)?.get(r.approval) : undefined;
  return a ? <ApprovalCard of={a} /> : null;
}

function Actions({ of: r }: { of: Rollout }) {
  return (
    <span class="actions">
      {!r.ended_at && may("rolloutCancel") && <button class="danger" onClick={() => void act(text.rollouts.cancel, () => call("rolloutCancel", { id: r.id }, {}))}>{text.rollouts.cancel}</button>}
      {r.snapshot && r.ended_at && r.state !== "rolled_back" && may("rolloutRollback") && <button onClick={() => void act(text.rollouts.rollback, () => call("rolloutRollback", { id: r.id }))}>{text.rollouts.rollback}</button>}
    </span>
  );
}

export function RolloutPage({ id }: { id: string }) {
  const all = need(rollouts);
  const r = all?.get(id);
  useEffect(() => {
    if (all && !r) rollouts.changed(id);
  }, [id, !!all]);
  if (!all) return <Loading />;
  if (!r) return <Empty>{text.rollouts.gone(id)}</Empty>;
  const seesOutput = may("rolloutLogs");
  return (
    <>
      <header class="page-head"><h2>{r.playbook_name} → {r.target_name}</h2><State of={r.state} /><Actions of={r} /></header>
      {r.error && <p class="problem" role="alert">{r.error}</p>}
      {r.unchecked && <p class="warning">{text.rollouts.unchecked(r.unchecked)}</p>}
      <p class="dim">
        <code>{r.id}</code> · {r.owner} · <Time at={r.created_at} />{r.note && ` · “${r.note}”`}{r.decided_by && ` · ${text.rollouts.decidedBy(r.decided_by)}`}
        {r.exit_code !== null && ` · ${text.command.exit} ${r.exit_code}`}
      </p>
      <Question of={r} />
      {seesOutput && !r.unchecked && <><h2>{text.rollouts.check}</h2><Log path={pathOf("rolloutLogs", { id, phase: "check" })} /></>}
      {seesOutput && RAN.has(r.state) && !r.check_only && <><h2>{text.rollouts.run}</h2><Log path={pathOf("rolloutLogs", { id, phase: "run" })} /></>}
    </>
  );
}

export function Rollouts() {
  const all = need(rollouts);
  return (
    <Loaded items={all && [...all.values()].reverse()} error={rollouts.error.value} empty={text.rollouts.none}>
      {(items) => (
        <table>
          <thead><tr>{text.rollouts.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
          <tbody>{items.map((r) => (
            <tr key={r.id}>
              <td><a href={link("changes", "rollouts", r.id)}>{r.playbook_name}</a></td><td>{r.target_name}</td><td><State of={r.state} /></td>
              <td>{r.owner}</td><td><Time at={r.created_at} /></td><td><Time at={r.ended_at} /></td>
            </tr>
          ))}</tbody>
        </table>
      )}
    </Loaded>
  );
}
