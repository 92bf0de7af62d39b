// Playbooks: their tasks, the file they make, and applying them to a target after approval.
import { useEffect, useState } from "preact/hooks";
import { call, callRaw } from "../../api/client";
import type { Playbook } from "../../api/types";
import { may } from "../../live/session";
import { need, playbooks, rollouts, sandboxes, targets } from "../../live/store";
import { act } from "../../parts/notices";
import { Confirm, Empty, Field, Loaded, Loading, Time } from "../../parts/ui";
import { go, link } from "../../router";
import { text } from "../../text";

interface Task {
  id: string;
  name: string;
  module: string;
}

function Apply({ of: p }: { of: Playbook }) {
  const [form, set] = useState({ to: "", note: "", check: false });
  const places = [...(need(targets)?.values() ?? [])].map((t) => t.name);
  const boxes = [...(need(sandboxes)?.values() ?? [])].filter((s) => s.state === "running").map((s) => s.name ?? s.id);
  const submit = (e: Event) => {
    e.preventDefault();
    void act(text.playbooks.apply, async () => {
      const made = await call("playbookApply", { id: p.id }, { to: form.to, check: form.check, ...(form.note ? { note: form.note } : {}) } as never);
      await rollouts.load();
      go("changes", "rollouts", made.id);
    });
  };
  return (
    <form class="policy" onSubmit={submit}>
      <Field label={text.playbooks.to} hint={text.playbooks.toHint}>
        <input list="places" required value={form.to} onInput={(e) => set({ ...form, to: e.currentTarget.value })} />
      </Field>
      <datalist id="places">{[...places, ...boxes].map((n) => <option key={n} value={n} />)}</datalist>
      <Field label={text.playbooks.note}><input value={form.note} onInput={(e) => set({ ...form, note: e.currentTarget.value })} /></Field>
      <label><input type="checkbox" checked={form.check} onChange={(e) => set({ ...form, check: e.currentTarget.checked })} /> {text.playbooks.checkOnly}</label>
      <p class="dim">{text.playbooks.applyNote}</p>
      <button class="primary">{text.playbooks.send}</button>
    </form>
  );
}

export function PlaybookPage({ id }: { id: string }) {
  const all = need(playbooks);
  const p = all?.get(id);
  const [full, setFull] = useState<Playbook>();
  const [file, setFile] = useState("");
  const [asking, ask] = useState(false);
  useEffect(() => {
    call("playbookGet", { id }).then(setFull, () => {});
    callRaw("playbookExport", { id }).then((r) => r.text()).then(setFile, () => {});
  }, [id, p?.updated_at]);
  if (!all) return <Loading />;
  if (!p) return <Empty>{text.playbooks.gone(id)}</Empty>;
  const tasks = (Array.isArray(full?.tasks) ? full.tasks : []) as unknown as Task[];
  return (
    <>
      <header class="page-head">
        <h2>{p.name}</h2>
        {may("playbookRemove") && <button class="danger" onClick={() => ask(true)}>{text.common.remove}</button>}
        {asking && <Confirm question={text.playbooks.removeAsk(p.name)} verb={text.common.remove} onClose={() => ask(false)} onYes={() => void act(text.common.remove, () => call("playbookRemove", { id })).then((ok) => ok && go("changes", "playbooks"))} />}
      </header>
      <ol>{tasks.map((t) => <li key={t.id}>{t.name} <code>{t.module}</code></li>)}</ol>
      <h2>{text.playbooks.file}</h2>
      <pre class="json">{file || text.common.loading}</pre>
      {may("playbookApply") && <><h2>{text.playbooks.apply}</h2><Apply of={p} /></>}
    </>
  );
}

export function Playbooks() {
  const all = need(playbooks);
  return (
    <Loaded items={all && [...all.values()].reverse()} error={playbooks.error.value} empty={text.playbooks.none}>
      {(items) => (
        <table>
          <thead><tr>{text.playbooks.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
          <tbody>{items.map((p) => (
            <tr key={p.id}>
              <td><a href={link("changes", "playbooks", p.id)}>{p.name}</a></td>
              <td class="number">{Array.isArray(p.tasks) ? p.tasks.length : p.tasks}</td>
              <td>{p.owner}</td>
              <td><Time at={p.updated_at} /></td>
            </tr>
          ))}</tbody>
        </table>
      )}
    </Loaded>
  );
}
