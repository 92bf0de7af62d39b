// The inbox: every question that waits for a person, what was decided, and what that still permits.
import { useState } from "preact/hooks";
import type { Approval } from "../../api/types";
import { may } from "../../live/session";
import { approvals, need } from "../../live/store";
import { askForDesktop, desktop } from "../../parts/desktop";
import { useKeys } from "../../parts/keys";
import { Loaded, Tabs } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";
import { ApprovalCard, decide } from "./card";
import { Grants } from "./grants";

const SHOWN = 100;
const LOOKED_MS = 300; // a card must have been on screen this long before a single key may decide it

const URGENCY = { high: 0, medium: 1, low: 2 };

/** The most urgent first, then the newest. */
function byUrgency(a: Approval, b: Approval): number {
  return URGENCY[a.urgency] - URGENCY[b.urgency] || (a.created_at < b.created_at ? 1 : -1);
}

function list(pending: boolean): Approval[] | undefined {
  const all = need(approvals);
  return all && [...all.values()].filter((a) => (a.state === "pending") === pending).sort(byUrgency).slice(0, SHOWN);
}

function focusComment(id: string): void {
  document.querySelector<HTMLInputElement>(`[data-id="${CSS.escape(id)}"] .comment`)?.focus();
}

function Pending({ items }: { items: readonly Approval[] }) {
  const [at, setAt] = useState({ id: items[0]?.id ?? "", since: performance.now() });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const index = Math.max(0, items.findIndex((a) => a.id === at.id));
  const current = items[index];
  const step = (by: number) => {
    const next = items[Math.min(items.length - 1, Math.max(0, index + by))];
    if (next) setAt({ id: next.id, since: performance.now() });
  };
  const answer = (yes: boolean) => {
    if (current && performance.now() - at.since >= LOOKED_MS && may("approvalApprove")) void decide(current, yes);
  };
  const toggle = (id: string) => setChosen((old) => {
    const next = new Set(old);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const all = (yes: boolean) => items.filter((a) => chosen.has(a.id)).forEach((a) => void decide(a, yes));
  useKeys([
    { keys: "j", label: text.keys.next, run: () => step(1) },
    { keys: "k", label: text.keys.previous, run: () => step(-1) },
    { keys: "a", label: text.approval.approve, run: () => answer(true) },
    { keys: "r", label: text.approval.reject, run: () => answer(false) },
    { keys: "c", label: text.approval.comment, run: () => current && focusComment(current.id) },
    { keys: "x", label: text.common.selected(1), run: () => current && toggle(current.id) },
  ]);
  const many = items.filter((a) => chosen.has(a.id)).length;
  return (
    <>
      <p class="dim">{text.approval.keys}</p>
      {many > 0 && (
        <p class="actions">{text.approval.batch(many)} <button class="primary" onClick={() => all(true)}>{text.approval.approve}</button> <button class="danger" onClick={() => all(false)}>{text.approval.reject}</button></p>
      )}
      <div class="cards">
        {items.map((a) => (
          <ApprovalCard key={a.id} of={a} current={a === current}>
            <input type="checkbox" checked={chosen.has(a.id)} aria-label={a.id} onChange={() => toggle(a.id)} />{" "}
          </ApprovalCard>
        ))}
      </div>
    </>
  );
}

function Questions({ pending }: { pending: boolean }) {
  return (
    <Loaded items={list(pending)} error={approvals.error.value} empty={text.approval.none}>
      {(items) => (pending ? <Pending items={items} /> : <div class="cards">{items.map((a) => <ApprovalCard key={a.id} of={a} />)}</div>)}
    </Loaded>
  );
}

export function ApprovalsPage() {
  const tab = place.value.path[1] ?? "pending";
  const tabs = { pending: text.approval.pending, decided: text.approval.decided, ...(may("grantList") ? { grants: text.grants.title } : {}) };
  return (
    <>
      <header class="page-head">
        <h1>{text.approval.title}</h1>
        {desktop.value === "default" && <button onClick={() => void askForDesktop()}>{text.approval.notify}</button>}
      </header>
      <Tabs tabs={tabs} current={tab} href={(t) => link("approvals", t)} />
      {tab === "grants" ? <Grants /> : <Questions pending={tab === "pending"} />}
    </>
  );
}
