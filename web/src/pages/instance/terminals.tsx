// The terminals that run in an instance, and a shell of one's own.
import { useState } from "preact/hooks";
import type { Sandbox } from "../../api/types";
import { may } from "../../live/session";
import { shellLine } from "../../parts/format";
import { act } from "../../parts/notices";
import { Empty, Time } from "../../parts/ui";
import { Pane } from "../../terminal/pane";
import { startShell } from "../../terminal/open";
import { text } from "../../text";
import { nameOf } from "../instances/actions";
import { useExecs } from "./execs";

export function Terminals({ of: s }: { of: Sandbox }) {
  const { execs } = useExecs(s.id);
  const [chosen, choose] = useState({ exec: "", control: false });
  const running = execs?.filter((e) => e.pty && !e.ended_at) ?? [];
  const start = () => act(text.terminal.start, async () => {
    const pane = await startShell(s.id, nameOf(s));
    choose({ exec: pane.exec, control: true });
  });
  if (s.state !== "running") return <Empty>{text.terminal.stopped(s.state)}</Empty>;
  return (
    <>
      <p class="actions">
        {may("execCreate") && <button class="primary" onClick={() => void start()}>{text.terminal.start}</button>}
        {running.map((e) => (
          <button key={e.id} aria-pressed={e.id === chosen.exec} onClick={() => choose({ exec: e.id, control: false })}>{shellLine(e.command).slice(0, 40)} · <Time at={e.started_at} /></button>
        ))}
      </p>
      {chosen.exec ? <Pane sandbox={s.id} exec={chosen.exec} title={nameOf(s)} control={chosen.control} /> : running.length === 0 && <Empty>{text.terminal.none}</Empty>}
    </>
  );
}
