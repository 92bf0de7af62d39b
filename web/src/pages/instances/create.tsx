// The dialog that makes an instance.
import { useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import type { Build, SandboxCreateInput } from "../../api/types";
import { may } from "../../live/session";
import { images, loadouts, need, sandboxes } from "../../live/store";
import { duration } from "../../parts/format";
import { act, notify } from "../../parts/notices";
import { Dialog, Field, State } from "../../parts/ui";
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

const LOADOUT = "loadout:"; // before the name of one, where images are chosen
const LOOK_MS = 1000;

const EMPTY: Form = { name: "", runtime: "native", image: "host", memory: "1", cpus: "", network: "none", allow: "" };

function requestOf(f: Form): SandboxCreateInput {
  const allow = f.allow.split(/[\s,]+/).filter(Boolean);
  return {
    ...(f.name ? { name: f.name } : {}),
    ...(f.runtime === "vm" ? {} : f.image.startsWith(LOADOUT) ? { loadout: f.image.slice(LOADOUT.length) } : { image: f.image }),
    runtime: f.runtime,
    ...(f.memory ? { memory_bytes: Math.round(Number(f.memory) * GIB) } : {}),
    ...(f.cpus ? { cpu_millis: Math.round(Number(f.cpus) * 1000) } : {}),
    network: f.network,
    ...(f.network === "allowlist" ? { allow } : {}),
  } as SandboxCreateInput;
}

/** Builds the loadout that was chosen; steps that were built before take no time.  Builds have no events: they are looked at. */
async function prepare(form: Form, onStep: (b: Build) => void): Promise<void> {
  if (form.runtime === "vm" || !form.image.startsWith(LOADOUT)) return;
  let b = await call("loadoutBuild", {}, { loadout: form.image.slice(LOADOUT.length), runtime: form.runtime, wait: false } as never);
  while (!b.ended_at) {
    onStep(b);
    await new Promise((go) => setTimeout(go, LOOK_MS));
    b = await call("buildGet", { id: b.id });
  }
  onStep(b);
  if (b.failure) throw new ApiError(0, "failed", b.failure, `holt build log ${b.id}`, `build/${b.id}`);
}

async function create(form: Form, onStep: (b: Build) => void): Promise<void> {
  const began = performance.now();
  await prepare(form, onStep);
  const made = await call("sandboxCreate", {}, requestOf(form));
  sandboxes.changed(made.id);
  notify("done", text.instance.ready(made.name ?? made.id, duration(Math.round(performance.now() - began))), made.warnings.join("; "));
  go("instances", made.id);
}

interface Step {
  name: string;
  state: string;
  ms?: number;
}

function Progress({ of: b }: { of: Build }) {
  return (
    <ol class="steps" aria-label={text.instance.steps} aria-live="polite">
      {(b.steps as unknown as Step[]).map((s, i) => <li key={i}><State of={s.state} /> {s.name} {s.ms ? <span class="dim">{duration(s.ms)}</span> : null}</li>)}
    </ol>
  );
}

function Fields({ form, set }: { form: Form; set: (change: Partial<Form>) => void }) {
  const names = ["host", ...[...(need(images)?.values() ?? [])].filter((i) => i.state === "ready").map((i) => i.name)];
  const profiles = may("loadoutBuild") ? [...(need(loadouts)?.values() ?? [])].filter((l) => l.path.startsWith("profiles/")) : [];
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
          <select {...input("image")}>
            {[...new Set(names)].map((n) => <option key={n}>{n}</option>)}
            {profiles.length > 0 && <optgroup label={text.instance.loadouts}>{profiles.map((l) => <option key={l.path} value={LOADOUT + l.name} title={l.description}>{l.name}</option>)}</optgroup>}
          </select>
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
  const [build, setBuild] = useState<Build>();
  const close = () => go("instances");
  const submit = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    setBuild(undefined);
    await act(text.instance.createTitle, () => create(form, setBuild));
    setBusy(false);
  };
  return (
    <Dialog title={text.instance.createTitle} onClose={close}>
      <form onSubmit={(e) => void submit(e)}>
        <Fields form={form} set={(part) => change((old) => ({ ...old, ...part }))} />
        {build && <Progress of={build} />}
        <footer>
          <button type="button" onClick={close}>{text.common.cancel}</button>
          <button class="primary" disabled={busy || (form.name !== "" && !NAME.test(form.name))}>{busy ? text.instance.making : text.instance.make}</button>
        </footer>
      </form>
    </Dialog>
  );
}
