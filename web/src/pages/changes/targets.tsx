// The machines that playbooks are applied to.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Target } from "../../api/types";
import { may } from "../../live/session";
import { need, targets } from "../../live/store";
import { act, notify } from "../../parts/notices";
import { Dialog, Field, Loaded } from "../../parts/ui";
import { text } from "../../text";

function Add({ onClose }: { onClose: () => void }) {
  const [form, set] = useState({ name: "", address: "", host_key: "", sandbox: "", user: "root", people: 1 });
  const field = (key: "name" | "address" | "host_key" | "sandbox" | "user") => ({ value: form[key], onInput: (e: { currentTarget: HTMLInputElement }) => set({ ...form, [key]: e.currentTarget.value }) });
  const submit = (e: Event) => {
    e.preventDefault();
    const where = form.sandbox ? { sandbox: form.sandbox } : { address: form.address, host_key: form.host_key, user: form.user };
    void act(text.targets.add, () => call("targetCreate", {}, { name: form.name, people: form.people, ...where } as never)).then((ok) => {
      if (!ok) return;
      onClose();
      void targets.load();
    });
  };
  return (
    <Dialog title={text.targets.add} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label={text.instance.name}><input required {...field("name")} /></Field>
        <Field label={text.targets.sandbox} hint={text.targets.sandboxHint}><input {...field("sandbox")} /></Field>
        <Field label={text.targets.address}><input disabled={!!form.sandbox} required={!form.sandbox} {...field("address")} /></Field>
        <Field label={text.targets.hostKey} hint={text.targets.hostKeyHint}><input disabled={!!form.sandbox} required={!form.sandbox} class="mono" {...field("host_key")} /></Field>
        <Field label={text.targets.user}><input disabled={!!form.sandbox} {...field("user")} /></Field>
        <Field label={text.targets.people}><input type="number" min={1} max={10} value={form.people} onInput={(e) => set({ ...form, people: Number(e.currentTarget.value) })} /></Field>
        <footer><button type="button" onClick={onClose}>{text.common.cancel}</button><button class="primary">{text.common.add}</button></footer>
      </form>
    </Dialog>
  );
}

async function check(t: Target): Promise<void> {
  const r = await call("targetCheck", { id: t.id });
  notify(r.reached ? "done" : "failed", r.reached ? text.targets.reached(t.name) : text.targets.unreached(t.name), r.reached ? undefined : r.output);
}

export function Targets() {
  const [adding, add] = useState(false);
  const all = need(targets);
  return (
    <>
      {may("targetCreate") && <p><button onClick={() => add(true)}>{text.targets.add}</button></p>}
      {adding && <Add onClose={() => add(false)} />}
      <Loaded items={all && [...all.values()]} error={targets.error.value} empty={text.targets.none}>
        {(items) => (
          <table>
            <thead><tr>{text.targets.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
            <tbody>{items.map((t) => (
              <tr key={t.id}>
                <td>{t.name}</td><td>{t.sandbox ?? `${t.user}@${t.address}:${t.port}`}</td><td class="number">{t.people}</td><td>{t.owner}</td>
                <td>
                  <span class="actions">
                    {may("targetCheck") && <button onClick={() => void act(text.targets.check, () => check(t))}>{text.targets.check}</button>}
                    {may("targetRemove") && <button class="quiet" onClick={() => void act(text.common.remove, () => call("targetRemove", { id: t.id })).then(() => targets.load())}>{text.common.remove}</button>}
                  </span>
                </td>
              </tr>
            ))}</tbody>
          </table>
        )}
      </Loaded>
    </>
  );
}
