// Tasks: the queue, what runs, and what came of it.
import { useState } from "preact/hooks";
import type { TaskRun } from "../../api/types";
import { may } from "../../live/session";
import { need, taskRuns } from "../../live/store";
import { Loaded, State, Time } from "../../parts/ui";
import { link, place, setQuery } from "../../router";
import { text } from "../../text";
import { TaskDetail } from "./detail";
import { progressOf } from "./progress";
import { SubmitDialog } from "./submit";

const GROUPS: Record<string, (t: TaskRun) => boolean> = {
  open: (t) => !t.ended_at, ended: (t) => !!t.ended_at, failed: (t) => t.state.startsWith("failed"), all: () => true,
};

function Row({ of: t }: { of: TaskRun }) {
  return (
    <tr>
      <td><a href={link("tasks", t.id)}>{t.name}</a></td>
      <td><State of={t.state} /> {t.message ?? ""}</td>
      <td>{progressOf(t)}</td>
      <td>{t.user}</td>
      <td class="number">{t.priority}</td>
      <td><Time at={t.created_at} /></td>
      <td><Time at={t.ended_at} /></td>
    </tr>
  );
}

function Queue() {
  const all = need(taskRuns);
  const group = place.value.query.get("show") ?? "all";
  const [submitting, submit] = useState(false);
  const rows = all && [...all.values()].filter(GROUPS[group] ?? (() => true)).sort((a, b) => (a.id < b.id ? 1 : -1));
  return (
    <>
      <header class="page-head">
        <h1>{text.nav.tasks}</h1>
        <span class="actions">
          {Object.keys(GROUPS).map((g) => <button key={g} aria-pressed={g === group} onClick={() => setQuery("show", g === "all" ? "" : g)}>{text.tasks.groups[g]}</button>)}
        </span>
        {may("taskRunCreate") && <button class="primary" onClick={() => submit(true)}>{text.tasks.submit}</button>}
      </header>
      <Loaded items={rows} error={taskRuns.error.value} empty={text.tasks.none}>
        {(items) => (
          <table>
            <thead><tr>{text.tasks.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
            <tbody>{items.map((t) => <Row key={t.id} of={t} />)}</tbody>
          </table>
        )}
      </Loaded>
      {submitting && <SubmitDialog onClose={() => submit(false)} />}
    </>
  );
}

export function TasksPage() {
  const id = place.value.path[1];
  return id ? <TaskDetail id={id} /> : <Queue />;
}
