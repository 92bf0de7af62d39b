// One task: where it is, what it prints, what it has made, and how to stop or repeat it.
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, pathOf } from "../../api/client";
import type { TaskArtifact, TaskRun } from "../../api/types";
import { may } from "../../live/session";
import { need, taskRuns } from "../../live/store";
import { duration, size } from "../../parts/format";
import { Log } from "../../parts/log";
import { act } from "../../parts/notices";
import { Confirm, Empty, Loaded, Loading, State, Time } from "../../parts/ui";
import { go, link } from "../../router";
import { addPane } from "../../terminal/open";
import { text } from "../../text";
import { progressOf } from "./progress";

const WAY = ["pending", "staging", "provisioning", "ready", "running", "completing", "completed"];

/** The states a task passes, with the one it is in. */
function Way({ of: t }: { of: TaskRun }) {
  const at = WAY.indexOf(t.state);
  return (
    <ol class="way" aria-label={text.tasks.way}>
      {WAY.map((s, i) => <li key={s} class={i < at ? "passed" : ""} aria-current={s === t.state ? "step" : undefined}>{s}</li>)}
      {at < 0 && <li aria-current="step"><State of={t.state} /></li>}
    </ol>
  );
}

function Artifacts({ of: t }: { of: TaskRun }) {
  const [items, setItems] = useState<TaskArtifact[]>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    call("taskRunArtifacts", { id: t.id }).then((r) => setItems(r.artifacts), (e: ApiError) => setError(e));
  }, [t.id, t.state]);
  return (
    <Loaded items={items} error={error} empty={t.ended_at ? text.tasks.noArtifacts : text.tasks.artifactsLater}>
      {(all) => (
        <table>
          <tbody>
            {all.map((a) => (
              <tr key={a.path}>
                <td><a href={pathOf("taskRunArtifact", { id: t.id, path: a.path })} download={a.path.split("/").at(-1)}><code>{a.path}</code></a></td>
                <td class="number">{size(a.size)}</td><td class="dim"><code>{a.sha256.slice(0, 12)}</code></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Loaded>
  );
}

function Actions({ of: t }: { of: TaskRun }) {
  const [asking, ask] = useState(false);
  const retry = () => act(text.tasks.retry, async () => {
    const made = await call("taskRunRetry", { id: t.id });
    go("tasks", made.id);
  });
  const watch = () => {
    if (!t.sandbox || !t.session) return;
    addPane({ sandbox: t.sandbox, exec: t.session, title: t.name, control: false });
    go("terminals");
  };
  return (
    <span class="actions">
      {t.sandbox && t.session && !t.ended_at && <button onClick={watch}>{text.instance.pane}</button>}
      {t.ended_at && may("taskRunRetry") && <button onClick={() => void retry()}>{text.tasks.retry}</button>}
      {!t.ended_at && may("taskRunCancel") && <button class="danger" onClick={() => ask(true)}>{text.tasks.cancel}</button>}
      {asking && <Confirm question={text.tasks.cancelAsk(t.name)} verb={text.tasks.cancel} onClose={() => ask(false)} onYes={() => void act(text.tasks.cancel, () => call("taskRunCancel", { id: t.id }, {}))} />}
    </span>
  );
}

function Children({ of: t }: { of: TaskRun }) {
  const children = [...(taskRuns.items.value?.values() ?? [])].filter((c) => c.parent === t.id);
  if (!children.length) return null;
  return (
    <>
      <h2>{text.tasks.children}</h2>
      <ul>{children.map((c) => <li key={c.id}><a href={link("tasks", c.id)}>{c.name}</a> <State of={c.state} /></li>)}</ul>
    </>
  );
}

function took(t: TaskRun): number | null {
  if (!t.started_at || !t.ended_at) return null;
  return Date.parse(t.ended_at) - Date.parse(t.started_at);
}

export function TaskDetail({ id }: { id: string }) {
  const all = need(taskRuns);
  const t = all?.get(id);
  useEffect(() => {
    if (all && !t) taskRuns.changed(id);
  }, [id, !!all]);
  if (!all) return <Loading />;
  if (!t) return <Empty>{text.tasks.gone(id)}</Empty>;
  return (
    <>
      <header class="page-head"><h1>{t.name}</h1><State of={t.state} /><Actions of={t} /></header>
      {t.error && <p class="problem" role="alert">{t.error}</p>}
      {t.warnings.map((w) => <p key={String(w)} class="warning">{String(w)}</p>)}
      <Way of={t} />
      <p class="dim">
        <code>{t.id}</code> · {t.user} · <Time at={t.created_at} />{took(t) !== null && ` · ${duration(took(t))}`}{t.attempt > 1 && ` · ${text.tasks.attempt(t.attempt)}`}
        {t.sandbox && <> · <a href={link("instances", t.sandbox)}>{t.sandbox}</a></>}{progressOf(t) && ` · ${progressOf(t)}`}{t.exit_code !== null && ` · ${text.command.exit} ${t.exit_code}`}
      </p>
      <h2>{text.tasks.log}</h2>
      {may("taskRunLogs") ? <Log path={pathOf("taskRunLogs", { id: t.id })} /> : <Empty>{text.tasks.noContent}</Empty>}
      <h2>{text.tasks.artifacts}</h2>
      <Artifacts of={t} />
      <Children of={t} />
      <h2>{text.tasks.manifest}</h2>
      <pre class="json">{JSON.stringify(t.manifest, null, 2)}</pre>
    </>
  );
}
