// Submitting a task: a few fields, or a whole manifest in YAML.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { act } from "../../parts/notices";
import { Dialog, Field } from "../../parts/ui";
import { go } from "../../router";
import { text } from "../../text";

interface Form {
  name: string;
  repository: string;
  branch: string;
  provider: string;
  prompt: string;
  command: string;
  timeout: string;
}

const EMPTY: Form = { name: "", repository: "", branch: "", provider: "claude", prompt: "", command: "", timeout: "" };
const PROVIDERS = ["claude", "codex", "aider", "opencode", "command"];

/** The manifest that a filled-in form stands for. */
function manifestOf(f: Form): object {
  return {
    version: "1", kind: "Task", metadata: { name: f.name },
    ...(f.repository ? { repository: { url: f.repository, ...(f.branch ? { branch: f.branch } : {}) } } : {}),
    agent: f.provider === "command" ? { command: f.command } : { provider: f.provider, prompt: f.prompt },
    ...(f.timeout ? { lifecycle: { timeout: f.timeout } } : {}),
  };
}

const SAMPLE = `version: "1"
kind: Task
metadata:
  name: Report
agent:
  command: echo hello > ~/outbox/hello.txt
lifecycle:
  timeout: 10m
`;

function Fields({ form, set }: { form: Form; set: (f: Form) => void }) {
  const input = (key: keyof Form, placeholder = "") => <input value={form[key]} placeholder={placeholder} onInput={(e) => set({ ...form, [key]: e.currentTarget.value })} />;
  return (
    <>
      <Field label={text.instance.name}>{input("name")}</Field>
      <div class="two">
        <Field label={text.tasks.repository}>{input("repository", "https://…")}</Field>
        <Field label={text.tasks.branch}>{input("branch", "main")}</Field>
      </div>
      <div class="two">
        <Field label={text.tasks.agent}><select value={form.provider} onChange={(e) => set({ ...form, provider: e.currentTarget.value })}>{PROVIDERS.map((p) => <option key={p}>{p}</option>)}</select></Field>
        <Field label={text.tasks.timeout}>{input("timeout", "24h")}</Field>
      </div>
      {form.provider === "command"
        ? <Field label={text.command.line}>{input("command", "make report")}</Field>
        : <Field label={text.tasks.prompt}><textarea rows={4} value={form.prompt} onInput={(e) => set({ ...form, prompt: e.currentTarget.value })} /></Field>}
    </>
  );
}

export function SubmitDialog({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState(EMPTY);
  const [yaml, setYaml] = useState<string>();
  const ready = yaml !== undefined ? yaml.trim() !== "" : form.name !== "" && (form.provider === "command" ? form.command : form.prompt) !== "";
  const submit = (e: Event) => {
    e.preventDefault();
    void act(text.tasks.submit, async () => {
      const made = await call("taskRunCreate", {}, { manifest: yaml ?? manifestOf(form) } as never);
      onClose();
      go("tasks", made.id);
    });
  };
  return (
    <Dialog title={text.tasks.submit} onClose={onClose}>
      <form onSubmit={submit}>
        {yaml === undefined
          ? <Fields form={form} set={setForm} />
          : <Field label={text.tasks.manifest} hint={text.tasks.manifestHint}><textarea class="editor short" spellcheck={false} value={yaml} onInput={(e) => setYaml(e.currentTarget.value)} /></Field>}
        <footer>
          <button type="button" class="quiet" onClick={() => setYaml(yaml === undefined ? SAMPLE : undefined)}>{yaml === undefined ? text.tasks.asYaml : text.tasks.asForm}</button>
          <button type="button" onClick={onClose}>{text.common.cancel}</button>
          <button class="primary" disabled={!ready}>{text.tasks.submit}</button>
        </footer>
      </form>
    </Dialog>
  );
}
