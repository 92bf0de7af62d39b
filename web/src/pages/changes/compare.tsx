// Two states to compare: instances, their snapshots, images.
import { useEffect, useState } from "preact/hooks";
import { call, type ApiError } from "../../api/client";
import type { Diff } from "../../api/types";
import { images, need, sandboxes, snapshots } from "../../live/store";
import { Empty, Loading, Problem } from "../../parts/ui";
import { place, setQuery } from "../../router";
import { text } from "../../text";
import { DiffView } from "./viewer";

/** Reads a diff once per pair; the previous one is dropped at once, so that no other states are shown under new names. */
export function useDiff(read: (() => Promise<Diff>) | undefined, key: string): { diff?: Diff | undefined; error?: ApiError | undefined; busy: boolean } {
  const [got, setGot] = useState<{ key: string; diff?: Diff; error?: ApiError }>({ key: "" });
  useEffect(() => {
    let current = true;
    if (read) read().then((diff) => current && setGot({ key, diff }), (error: ApiError) => current && setGot({ key, error }));
    return () => {
      current = false;
    };
  }, [key]);
  const mine = got.key === key;
  return { diff: mine ? got.diff : undefined, error: mine ? got.error : undefined, busy: read !== undefined && !mine };
}

function states(): string[] {
  const boxes = [...(need(sandboxes)?.values() ?? [])].map((s) => s.name ?? s.id);
  const taken = [...(need(snapshots)?.values() ?? [])].map((s) => `${s.sandbox_name ?? s.sandbox}@${s.name}`);
  return [...boxes, ...taken, ...[...(need(images)?.values() ?? [])].map((i) => i.name).filter((n) => n !== null)];
}

export function Compare() {
  const query = place.value.query;
  const from = query.get("from") ?? "";
  const to = query.get("to") ?? "";
  const [form, set] = useState({ from, to });
  const args = { to, ...(from ? { from } : {}) };
  const { diff, error, busy } = useDiff(to ? () => call("changeDiff", args) : undefined, `${from} ${to}`);
  const submit = (e: Event) => {
    e.preventDefault();
    setQuery("from", form.from.trim());
    setQuery("to", form.to.trim());
  };
  return (
    <>
      <form class="inline" onSubmit={submit}>
        <input list="states" value={form.from} placeholder={text.changes.fromHint} aria-label={text.changes.before} onInput={(e) => set({ ...form, from: e.currentTarget.value })} />
        <span aria-hidden="true">→</span>
        <input list="states" value={form.to} required placeholder={text.changes.toHint} aria-label={text.changes.after} onInput={(e) => set({ ...form, to: e.currentTarget.value })} />
        <button class="primary">{text.changes.compare}</button>
        <datalist id="states">{states().map((s) => <option key={s} value={s} />)}</datalist>
      </form>
      {error && <Problem error={error} />}
      {busy && <Loading />}
      {diff && <DiffView key={`${from} ${to}`} of={diff} />}
      {!to && <Empty>{text.changes.start}</Empty>}
    </>
  );
}
