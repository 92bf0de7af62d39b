// Snapshots of an instance: take one, go back to one, make new instances or an image from one.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Sandbox, Snapshot } from "../../api/types";
import { may } from "../../live/session";
import { need, snapshots } from "../../live/store";
import { size } from "../../parts/format";
import { act, notify } from "../../parts/notices";
import { Confirm, Dialog, Field, Loaded, Time } from "../../parts/ui";
import { go } from "../../router";
import { text } from "../../text";

interface Node {
  snapshot: Snapshot;
  depth: number;
}

/** Parents before their children, each with its distance from the root. */
export function treeOf(all: readonly Snapshot[]): Node[] {
  const ids = new Set(all.map((s) => s.id));
  const below = new Map<string, Snapshot[]>();
  for (const s of all) {
    const parent = s.parent && ids.has(s.parent) ? s.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), s]);
  }
  const nodes: Node[] = [];
  const add = (parent: string, depth: number): void => {
    for (const s of below.get(parent) ?? []) {
      nodes.push({ snapshot: s, depth });
      add(s.id, depth + 1);
    }
  };
  add("", 0);
  return nodes;
}

function ForkDialog({ source, title, onClose }: { source: string; title: string; onClose: () => void }) {
  const [form, set] = useState({ name: "", count: 1 });
  const submit = (e: Event) => {
    e.preventDefault();
    void act(text.snapshots.fork, async () => {
      const body = { source, count: form.count, ...(form.name ? { name: form.name } : {}) };
      const made = await call("fork", {}, body as never);
      onClose();
      notify("done", text.snapshots.forked(made.sandboxes.length));
      const first = (made.sandboxes as Sandbox[])[0];
      if (first) go("instances", first.id);
    });
  };
  return (
    <Dialog title={text.snapshots.forkOf(title)} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label={text.instance.name} hint={text.snapshots.forkName}><input value={form.name} onInput={(e) => set({ ...form, name: e.currentTarget.value })} /></Field>
        <Field label={text.snapshots.count}><input type="number" min={1} max={64} value={form.count} onInput={(e) => set({ ...form, count: Number(e.currentTarget.value) })} /></Field>
        <p class="dim">{text.snapshots.forkNote}</p>
        <footer><button type="button" onClick={onClose}>{text.common.cancel}</button><button class="primary">{text.snapshots.fork}</button></footer>
      </form>
    </Dialog>
  );
}

function Row({ node: { snapshot: s, depth }, box, onFork }: { node: Node; box: Sandbox; onFork: (s: Snapshot) => void }) {
  const [asking, ask] = useState<"restore" | "remove">();
  const restore = () => act(text.snapshots.restore, async () => {
    const done = await call("snapshotRestore", { id: box.id }, { snapshot: s.id } as never);
    notify("done", text.snapshots.restored(s.name), text.snapshots.undo(done.undo, done.execs_ended));
    await snapshots.load();
  });
  return (
    <tr>
      <td class={`depth-${Math.min(depth, 6)}`}>{depth > 0 && <span aria-hidden="true">└ </span>}<strong>{s.name}</strong> {s.automatic && <span class="badge">{text.snapshots.automatic}</span>}</td>
      <td class="number">{size(s.size_bytes)}</td>
      <td class="number">{s.entries}</td>
      <td><Time at={s.created_at} /></td>
      <td class="dim"><code>{s.digest.slice(0, 19)}</code></td>
      <td>
        <span class="actions">
          {may("snapshotRestore") && <button onClick={() => ask("restore")}>{text.snapshots.restore}</button>}
          {may("fork") && <button onClick={() => onFork(s)}>{text.snapshots.fork}</button>}
          {may("snapshotRemove") && <button class="danger" onClick={() => ask("remove")}>{text.common.remove}</button>}
        </span>
        {asking === "restore" && <Confirm question={text.snapshots.restoreAsk(s.name)} verb={text.snapshots.restore} onClose={() => ask(undefined)} onYes={() => void restore()} />}
        {asking === "remove" && <Confirm question={text.snapshots.removeAsk(s.name)} verb={text.common.remove} onClose={() => ask(undefined)} onYes={() => void act(text.common.remove, () => call("snapshotRemove", { id: s.id }))} />}
      </td>
    </tr>
  );
}

function Take({ of: s }: { of: Sandbox }) {
  const [name, setName] = useState("");
  const [image, setImage] = useState("");
  const take = (e: Event) => {
    e.preventDefault();
    void act(text.snapshots.take, async () => {
      const made = await call("snapshotCreate", { id: s.id }, (name ? { name } : {}) as never);
      notify("done", text.snapshots.taken(made.name), text.snapshots.frozen(made.frozen_us));
      setName("");
    });
  };
  const commit = (e: Event) => {
    e.preventDefault();
    void act(text.snapshots.commit, () => call("imageCommit", { id: s.id }, { image } as never), text.snapshots.committed(image)).then((ok) => ok && setImage(""));
  };
  return (
    <div class="inline">
      {may("snapshotCreate") && <form class="inline" onSubmit={take}><input value={name} placeholder={text.snapshots.name} aria-label={text.snapshots.name} onInput={(e) => setName(e.currentTarget.value)} /><button class="primary">{text.snapshots.take}</button></form>}
      {may("imageCommit") && <form class="inline" onSubmit={commit}><input value={image} placeholder="team/app:1.0" aria-label={text.snapshots.imageName} onInput={(e) => setImage(e.currentTarget.value)} /><button disabled={!image}>{text.snapshots.commit}</button></form>}
    </div>
  );
}

export function Snapshots({ of: s }: { of: Sandbox }) {
  const all = need(snapshots);
  const [forking, fork] = useState<{ source: string; title: string }>();
  const mine = all && treeOf([...all.values()].filter((one) => one.sandbox === s.id));
  return (
    <>
      <Take of={s} />
      {may("fork") && <p><button onClick={() => fork({ source: s.id, title: s.name ?? s.id })}>{text.snapshots.forkNow}</button></p>}
      <Loaded items={mine} error={snapshots.error.value} empty={text.snapshots.none}>
        {(nodes) => (
          <table>
            <thead><tr>{text.snapshots.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
            <tbody>{nodes.map((n) => <Row key={n.snapshot.id} node={n} box={s} onFork={(one) => fork({ source: one.id, title: one.name })} />)}</tbody>
          </table>
        )}
      </Loaded>
      {forking && <ForkDialog source={forking.source} title={forking.title} onClose={() => fork(undefined)} />}
    </>
  );
}
