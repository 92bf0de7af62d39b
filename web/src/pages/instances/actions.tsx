// What can be done with an instance: the same buttons in the sidebar, the table and the instance's own page.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Sandbox } from "../../api/types";
import { may } from "../../live/session";
import { act } from "../../parts/notices";
import { Confirm } from "../../parts/ui";
import { go, place } from "../../router";
import { openPane } from "../../terminal/open";
import { text } from "../../text";

export function nameOf(s: Sandbox): string {
  return s.name ?? s.id;
}

interface Action {
  label: string;
  when: (s: Sandbox) => boolean;
  run: (s: Sandbox) => Promise<unknown>;
}

const isUp = (s: Sandbox) => s.state === "running" || s.state === "paused";

const ACTIONS: Action[] = [
  { label: text.instance.stop, when: isUp, run: (s) => call("sandboxStop", { id: s.id }, {}) },
  { label: text.instance.start, when: (s) => s.state === "stopped", run: (s) => call("sandboxStart", { id: s.id }) },
  { label: text.instance.restart, when: isUp, run: (s) => call("sandboxRestart", { id: s.id }, {}) },
  { label: text.instance.force, when: isUp, run: (s) => call("sandboxStop", { id: s.id }, { grace_ms: 0 }) },
  { label: text.instance.pause, when: (s) => s.state === "running", run: (s) => call("sandboxPause", { id: s.id }) },
  { label: text.instance.resume, when: (s) => s.state === "paused", run: (s) => call("sandboxResume", { id: s.id }) },
];

export async function showPane(s: Sandbox): Promise<void> {
  await act(text.instance.pane, async () => {
    await openPane(s.id, nameOf(s));
    go("terminals");
  });
}

function leave(id: string): void {
  if (place.value.path[1] === id) go("instances");
}

export function InstanceActions({ of: s }: { of: Sandbox }) {
  const [asking, ask] = useState(false);
  const remove = () => act(`${text.instance.remove} ${nameOf(s)}`, async () => {
    await call("sandboxDestroy", { id: s.id });
    leave(s.id);
  });
  return (
    <span class="actions">
      {may("execCreate") && <button disabled={s.state !== "running"} title={s.state === "running" ? undefined : text.terminal.stopped(s.state)} onClick={() => void showPane(s)}>{text.instance.pane}</button>}
      {may("sandboxStop") && ACTIONS.filter((a) => a.when(s)).map((a) => (
        <button key={a.label} onClick={() => void act(`${a.label} ${nameOf(s)}`, () => a.run(s))}>{a.label}</button>
      ))}
      {may("sandboxDestroy") && <button class="danger" onClick={() => ask(true)}>{text.instance.remove}</button>}
      {asking && <Confirm question={text.instance.lost(nameOf(s))} verb={text.instance.remove} onYes={() => void remove()} onClose={() => ask(false)} />}
    </span>
  );
}
