// One question to a person: who asks, what exactly, and what each answer does.
import { useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import type { Approval } from "../../api/types";
import { may } from "../../live/session";
import { approvals, need, tasks } from "../../live/store";
import { act, notify } from "../../parts/notices";
import { State, Time } from "../../parts/ui";
import { link } from "../../router";
import { text } from "../../text";

type Scope = "once" | "sandbox" | "always";

/** What is asked, in one line. */
export function subjectOf(a: Approval): string {
  if (a.question) return a.question;
  if (a.host) return `${a.host}:${a.port ?? ""}`;
  const task = a.task_id && may("taskList") ? need(tasks)?.get(a.task_id)?.title : undefined;
  return [a.action, task ? `“${task}”` : a.task_id, a.to && `→ ${a.to}`].filter(Boolean).join(" ");
}

interface Decision {
  reason?: string;
  scope?: Scope;
  choice?: string;
}

export async function decide(a: Approval, yes: boolean, { reason = "", scope = "once", choice = "" }: Decision = {}): Promise<boolean> {
  const body = { ...(reason ? { reason } : {}), ...(yes ? { scope } : {}), ...(yes && choice ? { choice } : {}) };
  return act(yes ? text.approval.approve : text.approval.reject, async () => {
    try {
      await call(yes ? "approvalApprove" : "approvalDeny", { id: a.id }, body);
    } catch (e) {
      if (!(e instanceof ApiError) || e.status !== 409) throw e;
      notify("done", text.approval.elsewhere);
    }
    approvals.changed(a.id);
  }, yes ? text.approval.approved : text.approval.rejected);
}

function Who({ of: a }: { of: Approval }) {
  return (
    <p class="dim">
      {a.agent && <>{a.agent} · </>}
      {a.sandbox && <><a href={link("instances", a.sandbox)}>{a.sandbox}</a> · </>}
      <Time at={a.created_at} />
      {a.expires_at && <> · {text.approval.expires} <Time at={a.expires_at} /></>}
    </p>
  );
}

function Decided({ of: a }: { of: Approval }) {
  return <p><State of={a.state} /> {a.decided_by && <>{text.approval.by} {a.decided_by} · </>}<Time at={a.decided_at} />{a.reason && <> · “{a.reason}”</>}</p>;
}

interface Attachment {
  kind: string;
  name: string;
  content?: string;
}

/** What helps to decide: a diff, a playbook, a screen.  Lists leave the content out, so it is read when it is opened. */
function Attachments({ of: a }: { of: Approval }) {
  const [full, setFull] = useState<readonly Attachment[]>();
  const all = full ?? (a.attachments as Attachment[]);
  const open = () => void call("approvalGet", { id: a.id }).then((r) => setFull(r.attachments as Attachment[]), () => {});
  return (
    <>
      {all.map((x, i) => (
        <details key={i} onToggle={open}>
          <summary>{x.kind}: {x.name}</summary>
          <pre class="json">{x.content ?? text.common.loading}</pre>
        </details>
      ))}
      {a.arguments && <details><summary>{a.action}</summary><pre class="json">{JSON.stringify(a.arguments, null, 2)}</pre></details>}
    </>
  );
}

function Answer({ of: a }: { of: Approval }) {
  const [reason, setReason] = useState("");
  const [choice, setChoice] = useState(a.alternatives[0] ?? "");
  const [scope, setScope] = useState<Scope>("once");
  return (
    <>
      <input class="comment" value={reason} placeholder={text.approval.comment} aria-label={text.approval.comment} onInput={(e) => setReason(e.currentTarget.value)} />
      {a.alternatives.length > 0 && (
        <label class="scope">{text.approval.choice}{" "}
          <select value={choice} onChange={(e) => setChoice(e.currentTarget.value)}>{a.alternatives.map((x) => <option key={x}>{x}</option>)}</select>
        </label>
      )}
      {a.kind === "egress" && (
        <label class="scope">{text.approval.scope}{" "}
          <select value={scope} onChange={(e) => setScope(e.currentTarget.value as Scope)}>
            {Object.entries(text.approval.scopes).map(([id, label]) => <option key={id} value={id}>{label}</option>)}
          </select>
        </label>
      )}
      {scope !== "once" && <p class="rule">{text.approval.rule(subjectOf(a), text.approval.scopes[scope] ?? scope)}</p>}
      <span class="actions">
        <button class="primary" onClick={() => void decide(a, true, { reason, scope, choice })}>{text.approval.approve}</button>
        <button class="danger" onClick={() => void decide(a, false, { reason })}>{text.approval.reject}</button>
      </span>
    </>
  );
}

export function ApprovalCard({ of: a, current = false, children }: { of: Approval; current?: boolean; children?: preact.ComponentChildren }) {
  return (
    <article class={`card approval ${current ? "current" : ""}`} data-id={a.id} aria-current={current ? "true" : undefined}>
      <h3>{children}<span class="badge">{a.kind}{a.urgency === "high" && ` · ${a.urgency}`}</span> <code>{subjectOf(a)}</code></h3>
      <Who of={a} />
      {a.note && <p>{a.note}</p>}
      <Attachments of={a} />
      {a.state === "pending" ? may("approvalApprove") && <Answer of={a} /> : <Decided of={a} />}
    </article>
  );
}
