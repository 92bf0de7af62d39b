// What an instance may reach, what it tried to reach, and the button that allows a refused host.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Event, Sandbox } from "../../api/types";
import { may } from "../../live/session";
import { recent, sandboxes } from "../../live/store";
import { act } from "../../parts/notices";
import { Empty, Field, Time } from "../../parts/ui";
import { text } from "../../text";

function hostsOf(s: Sandbox): string[] {
  return (s.network["allow"] as string[] | undefined) ?? [];
}

function setPolicy(s: Sandbox, mode: string, allow: readonly string[]): Promise<boolean> {
  const network = mode === "allowlist" ? { mode, allow } : mode;
  return act(text.network.policy, async () => {
    await call("sandboxUpdate", { id: s.id }, { network } as never);
    sandboxes.changed(s.id);
  });
}

function Policy({ of: s }: { of: Sandbox }) {
  const [mode, setMode] = useState(String(s.network["mode"]));
  const [hosts, setHosts] = useState(hostsOf(s).join("\n"));
  const save = (e: Event | SubmitEvent) => {
    (e as SubmitEvent).preventDefault();
    void setPolicy(s, mode, hosts.split(/[\s,]+/).filter(Boolean));
  };
  return (
    <form class="policy" onSubmit={save}>
      <Field label={text.network.mode}>
        <select value={mode} disabled={!may("sandboxUpdate")} onChange={(e) => setMode(e.currentTarget.value)}>{Object.entries(text.instance.modes).map(([id, label]) => <option key={id} value={id}>{label}</option>)}</select>
      </Field>
      {mode === "allowlist" && <Field label={text.network.allowed} hint={text.instance.allowHint}><textarea rows={4} value={hosts} onInput={(e) => setHosts(e.currentTarget.value)} /></Field>}
      {may("sandboxUpdate") && <button class="primary">{text.common.save}</button>}
    </form>
  );
}

function Verdict({ of: e, s }: { of: Event; s: Sandbox }) {
  const host = String(e.data["host"] ?? "");
  const refused = e.type.includes("denied") || e.type.includes("refused");
  return (
    <tr>
      <td><Time at={e.time} /></td><td class={refused ? "bad" : undefined}>{e.type}</td><td><code>{host}{e.data["port"] ? `:${String(e.data["port"])}` : ""}</code></td><td>{String(e.data["reason"] ?? "")}</td>
      <td>{refused && host && may("sandboxUpdate") && <button onClick={() => void setPolicy(s, "allowlist", [...hostsOf(s), host])}>{text.network.allowThis}</button>}</td>
    </tr>
  );
}

export function Network({ of: s }: { of: Sandbox }) {
  const verdicts = recent.value.filter((e) => e.type.startsWith("egress.") && e.object === `sandbox/${s.id}`);
  return (
    <>
      <Policy key={s.id} of={s} />
      <h2>{text.network.verdicts}</h2>
      {verdicts.length === 0 && <Empty>{text.network.none}</Empty>}
      <table><tbody>{verdicts.map((e) => <Verdict key={e.seq} of={e} s={s} />)}</tbody></table>
    </>
  );
}
