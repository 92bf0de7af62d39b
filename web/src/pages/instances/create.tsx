// The dialog that makes an instance.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { SandboxCreateInput } from "../../api/types";
import { images, need, sandboxes } from "../../live/store";
import { duration } from "../../parts/format";
import { act, notify } from "../../parts/notices";
import { Dialog, Field } from "../../parts/ui";
import { go } from "../../router";
import { text } from "../../text";

const NAME = /^[a-z0-9-]+$/;
const GIB = 1024 ** 3;
const RUNTIMES: Record<string, string> = { native: text.instance.native, runc: `${text.instance.container} (runc)`, crun: `${text.instance.container} (crun)`, runsc: `${text.instance.container} (gVisor)`, vm: text.instance.vm };

interface Form {
  name: string;
  runtime: string;
  image: string;
  memory: string;
  cpus: string;
  network: string;
  allow: string;
}

const EMPTY: Form = { name: "", runtime: "native", image: "host", memory: "1", cpus: "", network: "none", allow: "" };

function requestOf(f: Form): SandboxCreateInput {
  const allow = f.allow.split(/[\s,]+/).filter(Boolean);
  return {
    ...(f.name ? { name: f.name } : {}),
    ...(f.runtime === "vm" ? {} : { image: f.image }),
    runtime: f.runtime,
    ...(f.memory ? { memory_bytes: Math.round(Number(f.memory) * GIB) } : {}),
    ...(f.cpus ? { cpu_millis: Math.round(Number(f.cpus) * 1000) } : {}),
    network: f.network,
    ...(f.network === "allowlist" ? { allow } : {}),
  } as SandboxCreateInput;
}

async function create(form: Form): Promise<void> {
  const began = performance.now();
  const made = await call("sandboxCreate", {}, requestOf(form));
  sandboxes.changed(made.id);
  notify("done", text.instance.ready(made.name ?? made.id, duration(Math.round(performance.now() - began))), made.warnings.join("; "));
  go("instances", made.id);
}

function Fields({ form, set }: { form: Form; set: (change: Partial<Form>) => void }) {
  const names = ["host", ...[...(need(images)?.values() ?? [])].filter((i) => i.state === "ready").map((i) => i.name)];
  const input = (key: keyof Form) => ({ value: form[key], onInput: (e: InputEvent) => set({ [key]: (e.currentTarget as HTMLInputElement).value }) });
  const badName = form.name !== "" && !NAME.test(form.name);
  return (
    <>
      <Field label={text.instance.name} hint={text.instance.nameRule} error={badName ? text.instance.nameBad : undefined}>
        <input {...input("name")} maxLength={63} autoFocus aria-invalid={badName} />
      </Field>
      <Field label={text.instance.runtime}>
        <select {...input("runtime")}>{Object.entries(RUNTIMES).map(([id, label]) => <option key={id} value={id}>{label}</option>)}</select>
      </Field>
      {form.runtime !== "vm" && (
        <Field label={text.instance.image}>
          <select {...input("image")}>{[...new Set(names)].map((n) => <option key={n}>{n}</option>)}</select>
        </Field>
      )}
      <div class="two">
        <Field label={`${text.instance.memory} (GiB)`}><input type="number" min="0.1" step="0.1" {...input("memory")} /></Field>
        <Field label={text.instance.cpus}><input type="number" min="0.1" step="0.1" placeholder={text.common.all} {...input("cpus")} /></Field>
      </div>
      <Field label={text.instance.network}>
        <select {...input("network")}>{Object.entries(text.instance.modes).map(([id, label]) => <option key={id} value={id}>{label}</option>)}</select>
      </Field>
      {form.network === "allowlist" && (
        <Field label={text.instance.allow} hint={text.instance.allowHint}>
          <textarea rows={3} value={form.allow} onInput={(e) => set({ allow: e.currentTarget.value })} />
        </Field>
      )}
    </>
  );
}

export function CreateDialog() {
  const [form, change] = useState(EMPTY);
  const [busy, setBusy] = useState(false);
  const close = () => go("instances");
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    await act(text.instance.createTitle, () => create(form));
    setBusy(false);
  };
  return (
    <Dialog title={text.instance.createTitle} onClose={close}>
      <form onSubmit={(e) => void submit(e)}>
        <Fields form={form} set={(part) => change((old) => ({ ...old, ...part }))} />
        <footer>
          <button type="button" onClick={close}>{text.common.cancel}</button>
          <button class="primary" disabled={busy || (form.name !== "" && !NAME.test(form.name))}>{busy ? text.instance.making : text.instance.make}</button>
        </footer>
      </form>
    </Dialog>
  );
}
