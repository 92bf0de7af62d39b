// Images, volumes, secrets, tokens, policies, templates, hosts, SSH access, webhooks and rules.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Rule } from "../../api/types";
import { may } from "../../live/session";
import { certificates, hosts, images, need, policies, secrets, sshSessions, templates, tokens, volumes, webhooks, type Kind } from "../../live/store";
import { size } from "../../parts/format";
import { act } from "../../parts/notices";
import { CopyText, Dialog, Field, Loaded, State, Tabs, Time } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";

interface Column<T> {
  head: string;
  cell: (item: T) => ComponentChildren;
}

interface TableProps<T> {
  kind: Kind<T>;
  columns: Column<T>[];
  remove: ((item: T) => Promise<unknown>) | undefined;
  /** Items that stay. */
  fixed?: (item: T) => boolean;
  empty: string;
}

function Table<T>({ kind, columns, remove, fixed, empty }: TableProps<T>) {
  const all = need(kind);
  return (
    <Loaded items={all && [...all.values()]} error={kind.error.value} empty={empty}>
      {(items) => (
        <table>
          <thead><tr>{columns.map((c) => <th key={c.head} scope="col">{c.head}</th>)}<th /></tr></thead>
          <tbody>
            {items.map((item, i) => (
              <tr key={i}>
                {columns.map((c) => <td key={c.head}>{c.cell(item)}</td>)}
                <td>{remove && !fixed?.(item) && <button class="quiet" onClick={() => void act(text.common.remove, () => remove(item)).then(() => kind.load())}>{text.common.remove}</button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Loaded>
  );
}

function Images() {
  const [name, setName] = useState("");
  const pull = (e: Event) => {
    e.preventDefault();
    void act(text.things.pull, () => call("imagePull", {}, { ref: name } as never)).then(() => images.load());
  };
  return (
    <>
      {may("imagePull") && <form class="inline" onSubmit={pull}><input value={name} placeholder="registry/name:tag" aria-label={text.things.pull} onInput={(e) => setName(e.currentTarget.value)} /><button disabled={!name}>{text.things.pull}</button></form>}
      <Table kind={images} empty={text.common.none} remove={may("imageRemove") ? (i) => call("imageRemove", { id: i.id }) : undefined} columns={[
        { head: text.instance.name, cell: (i) => i.name }, { head: "State", cell: (i) => <><State of={i.state} /> {i.state === "working" && `${i.phase ?? ""} ${size(i.done_bytes)}/${size(i.total_bytes)}`}{i.failure}</> },
        { head: text.files.size, cell: (i) => size(i.size_bytes) }, { head: "Created", cell: (i) => <Time at={i.created_at} /> },
      ]} />
    </>
  );
}

function Secrets() {
  const [open, setOpen] = useState(false);
  const [form, set] = useState({ name: "", value: "", hosts: "" });
  const save = (e: Event) => {
    e.preventDefault();
    const body = { name: form.name, value: form.value, hosts: form.hosts.split(/[\s,]+/).filter(Boolean) };
    void act(text.things.secrets, () => call("secretCreate", {}, body as never)).then((ok) => {
      if (!ok) return;
      setOpen(false);
      set({ name: "", value: "", hosts: "" });
      void secrets.load();
    });
  };
  return (
    <>
      {may("secretCreate") && <button onClick={() => setOpen(true)}>{text.common.add}</button>}
      <Table kind={secrets} empty={text.common.none} remove={may("secretRemove") ? (s) => call("secretRemove", { name: s.name }) : undefined} columns={[
        { head: text.instance.name, cell: (s) => s.name }, { head: text.things.hosts, cell: (s) => s.hosts.join(", ") }, { head: "Used by", cell: (s) => s.used_by }, { head: "Changed", cell: (s) => <Time at={s.rotated_at} /> },
      ]} />
      {open && (
        <Dialog title={text.things.secrets} onClose={() => setOpen(false)}>
          <form onSubmit={save}>
            <Field label={text.instance.name}><input value={form.name} onInput={(e) => set({ ...form, name: e.currentTarget.value })} /></Field>
            <Field label={text.things.value}><input type="password" autoComplete="off" value={form.value} onInput={(e) => set({ ...form, value: e.currentTarget.value })} /></Field>
            <Field label={text.things.hosts} hint={text.instance.allowHint}><input value={form.hosts} onInput={(e) => set({ ...form, hosts: e.currentTarget.value })} /></Field>
            <footer><button type="button" onClick={() => setOpen(false)}>{text.common.cancel}</button><button class="primary">{text.common.save}</button></footer>
          </form>
        </Dialog>
      )}
    </>
  );
}

function Tokens() {
  const [form, set] = useState({ name: "", role: "observer" });
  const [made, setMade] = useState("");
  const create = (e: Event) => {
    e.preventDefault();
    void act(text.things.tokens, async () => {
      const r = await call("tokenCreate", {}, form as never);
      setMade((r as { token: string }).token);
    }).then(() => tokens.load());
  };
  return (
    <>
      {may("tokenCreate") && (
        <form class="inline" onSubmit={create}>
          <input value={form.name} placeholder={text.instance.name} aria-label={text.instance.name} onInput={(e) => set({ ...form, name: e.currentTarget.value })} />
          <select value={form.role} aria-label={text.things.role} onChange={(e) => set({ ...form, role: e.currentTarget.value })}><option>observer</option><option>operator</option><option>admin</option></select>
          <button disabled={!form.name}>{text.common.add}</button>
        </form>
      )}
      <Table kind={tokens} empty={text.common.none} remove={may("tokenRevoke") ? (t) => call("tokenRevoke", { id: t.id }) : undefined} columns={[
        { head: text.instance.name, cell: (t) => t.name }, { head: text.things.role, cell: (t) => t.role }, { head: "Tenant", cell: (t) => t.tenant ?? "" }, { head: "Last used", cell: (t) => <Time at={t.last_used_at} /> }, { head: text.approval.expires, cell: (t) => <Time at={t.expires_at} /> },
      ]} />
      {made && <Dialog title={text.things.tokens} onClose={() => setMade("")}><p>{text.things.shownOnce}</p><CopyText value={made} /></Dialog>}
    </>
  );
}

function Rules() {
  const [rules, setRules] = useState<Rule[]>();
  const load = () => call("ruleList", {}).then((r) => setRules(r.rules));
  useEffect(() => void load(), []);
  return (
    <Loaded items={rules} empty={text.common.none}>
      {(items) => (
        <table><tbody>{items.map((r) => (
          <tr key={r.id}><td>{r.allow ? "allow" : "deny"}</td><td><code>{r.host}:{r.port}</code></td><td>{r.sandbox ?? r.tenant ?? text.common.all}</td><td>{r.created_by}</td><td><Time at={r.created_at} /></td>
            <td>{may("ruleRemove") && <button class="quiet" onClick={() => void act(text.common.remove, () => call("ruleRemove", { id: r.id })).then(load)}>{text.common.remove}</button>}</td></tr>
        ))}</tbody></table>
      )}
    </Loaded>
  );
}

function Volumes() {
  return <Table kind={volumes} empty={text.common.none} remove={may("volumeRemove") ? (v) => call("volumeRemove", { id: v.id }) : undefined} columns={[
    { head: text.instance.name, cell: (v) => v.name }, { head: "Kind", cell: (v) => v.kind }, { head: text.files.size, cell: (v) => `${size(v.used_bytes)} / ${size(v.size_bytes)}` }, { head: "Used by", cell: (v) => v.used_by }, { head: "Created", cell: (v) => <Time at={v.created_at} /> },
  ]} />;
}

function Policies() {
  return <Table kind={policies} empty={text.common.none} remove={may("policyRemove") ? (p) => call("policyRemove", { id: p.id }) : undefined} fixed={(p) => p.shipped} columns={[
    { head: text.instance.name, cell: (p) => p.name }, { head: "Commands", cell: (p) => rule(p.commands_allow, [...p.commands_deny, ...p.words_deny]) }, { head: "Paths", cell: (p) => rule(p.paths_allow, p.paths_deny) },
    { head: "Written", cell: (p) => rule(p.write_allow, p.write_deny) }, { head: text.things.sandboxes, cell: (p) => p.sandboxes },
  ]} />;
}

const FEW = 6;

/** What a pair of lists allows and denies, shortened. */
function rule(allow: string[], deny: string[]): string {
  const few = (list: string[]): string => list.slice(0, FEW).join(", ") + (list.length > FEW ? ` +${list.length - FEW}` : "");
  return [allow.length ? `only ${few(allow)}` : "", deny.length ? `not ${few(deny)}` : ""].filter(Boolean).join("; ") || text.common.all;
}

function Templates() {
  return <Table kind={templates} empty={text.common.none} remove={may("templateRemove") ? (t) => call("templateRemove", { id: t.id }) : undefined} columns={[
    { head: text.instance.name, cell: (t) => t.name }, { head: "Pool", cell: (t) => t.pool }, { head: "Owner", cell: (t) => t.owner }, { head: "Created", cell: (t) => <Time at={t.created_at} /> },
  ]} />;
}

function Hosts() {
  const all = need(hosts);
  const drain = (name: string, on: boolean) => void act(text.things.drain, () => call("hostDrain", { name }, { off: !on } as never)).then(() => hosts.load());
  return (
    <Loaded items={all && [...all.values()]} error={hosts.error.value} empty={text.common.none}>
      {(items) => (
        <table>
          <thead><tr><th scope="col">{text.instance.name}</th><th scope="col">State</th><th scope="col">{text.things.machines}</th><th scope="col">CPUs</th><th scope="col">Memory</th><th scope="col">URI</th><th /></tr></thead>
          <tbody>{items.map((h) => (
            <tr key={h.name}><td>{h.name}</td><td><State of={h.state} /> {h.drained && text.things.drained} {h.reason}</td><td>{h.machines}</td><td>{h.cpus_used} / {h.cpus}</td><td>{size(h.memory_used_bytes)} / {size(h.memory_bytes)}</td><td><code>{h.uri}</code></td>
              <td>{may("hostDrain") && <button class="quiet" onClick={() => drain(h.name, !h.drained)}>{h.drained ? text.things.undrain : text.things.drain}</button>}</td></tr>
          ))}</tbody>
        </table>
      )}
    </Loaded>
  );
}

function Access() {
  return (
    <>
      <h2>{text.things.certificates}</h2>
      <Table kind={certificates} empty={text.common.none} remove={may("accessRevoke") ? (c) => call("accessRevoke", { id: c.id }) : undefined} columns={[
        { head: "State", cell: (c) => <State of={c.state} /> }, { head: "Owner", cell: (c) => c.owner }, { head: "For", cell: (c) => c.sandbox ?? c.principals.join(", ") }, { head: text.approval.expires, cell: (c) => <Time at={c.expires_at} /> },
      ]} />
      <h2>{text.things.sshSessions}</h2>
      <Table kind={sshSessions} empty={text.common.none} remove={undefined} columns={[
        { head: "State", cell: (s) => <State of={s.state} /> }, { head: "Who", cell: (s) => s.person ?? s.holder ?? "" }, { head: text.things.sandboxes, cell: (s) => `${s.user ?? ""}@${s.sandbox}` }, { head: "From", cell: (s) => s.peer },
        { head: "Started", cell: (s) => <Time at={s.started_at} /> }, { head: "Ended", cell: (s) => <Time at={s.ended_at} /> }, { head: "Bytes", cell: (s) => `${size(s.bytes_in)} / ${size(s.bytes_out)}` },
      ]} />
    </>
  );
}

function Webhooks() {
  return <Table kind={webhooks} empty={text.common.none} remove={may("webhookRemove") ? (w) => call("webhookRemove", { id: w.id }) : undefined} columns={[
    { head: "URL", cell: (w) => <code>{w.url}</code> }, { head: "Events", cell: (w) => w.types.join(", ") }, { head: "Created", cell: (w) => <Time at={w.created_at} /> },
  ]} />;
}

const TABS: Record<string, [string, () => ComponentChildren]> = {
  images: [text.things.images, () => <Images />], volumes: [text.things.volumes, () => <Volumes />], secrets: [text.things.secrets, () => <Secrets />], tokens: [text.things.tokens, () => <Tokens />], rules: [text.things.rules, () => <Rules />],
  policies: [text.things.policies, () => <Policies />], templates: [text.things.templates, () => <Templates />], hosts: [text.things.hosts, () => <Hosts />], access: [text.things.access, () => <Access />], webhooks: [text.things.webhooks, () => <Webhooks />],
};

export function ThingsPage() {
  const tab = place.value.path[1] ?? "images";
  return (
    <>
      <h1>{text.things.title}</h1>
      <Tabs tabs={Object.fromEntries(Object.entries(TABS).map(([id, [label]]) => [id, label]))} current={tab} href={(t) => link("things", t)} />
      {TABS[tab]?.[1]()}
    </>
  );
}
