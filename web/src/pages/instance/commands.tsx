// Commands of an instance: run one, see what each printed.
import { useEffect, useState } from "preact/hooks";
import { call, callRaw, pathOf } from "../../api/client";
import type { Exec, Sandbox } from "../../api/types";
import { may } from "../../live/session";
import { duration, shellLine, size } from "../../parts/format";
import { act } from "../../parts/notices";
import { Loaded, State, Time } from "../../parts/ui";
import { text } from "../../text";
import { useExecs } from "./execs";

const SHOWN = 256 * 1024; // bytes of a stream

async function readStream(e: Exec, stream: "stdout" | "stderr"): Promise<string> {
  const bytes = stream === "stdout" ? e.stdout_bytes : e.stderr_bytes;
  const reply = await callRaw("execOutput", { id: e.sandbox, exec: e.id, stream, offset: Math.max(0, bytes - SHOWN) });
  return reply.text();
}

function Output({ of: e }: { of: Exec }) {
  const [out, setOut] = useState<{ stdout: string; stderr: string }>();
  useEffect(() => {
    let live = true;
    void Promise.all([readStream(e, "stdout"), readStream(e, "stderr")]).then(
      ([stdout, stderr]) => live && setOut({ stdout, stderr }), (x: Error) => live && setOut({ stdout: "", stderr: x.message }));
    return () => {
      live = false;
    };
  }, [e.id, e.stdout_bytes, e.stderr_bytes, e.state]);
  if (!out) return null;
  return (
    <div class="output">
      {out.stdout && <pre>{out.stdout}</pre>}
      {out.stderr && <pre class="stderr">{out.stderr}</pre>}
      {!out.stdout && !out.stderr && <p class="dim">{text.command.noOutput}</p>}
      <a href={pathOf("execOutput", { id: e.sandbox, exec: e.id, stream: "stdout" })} download={`${e.id}.txt`}>{text.common.download}</a>
    </div>
  );
}

function Row({ of: e, open, toggle }: { of: Exec; open: boolean; toggle: () => void }) {
  const how = e.ended_at ? (e.signal ? `signal ${e.signal}` : String(e.exit_code ?? e.state)) : "";
  return (
    <>
      <tr>
        <td><button class="quiet" aria-expanded={open} onClick={toggle}>{open ? "▾" : "▸"} <code>{shellLine(e.command)}</code></button></td>
        <td><State of={e.state} /> {how}{e.oom && " out of memory"}{e.timed_out && " timed out"}</td>
        <td class="number">{duration(e.duration_ms)}</td>
        <td class="number">{size(e.stdout_bytes + e.stderr_bytes)}</td>
        <td><Time at={e.started_at} /></td>
        <td>{!e.ended_at && may("execCancel") && <button onClick={() => void act(text.common.cancel, () => call("execCancel", { id: e.sandbox, exec: e.id }))}>{text.common.cancel}</button>}</td>
      </tr>
      {open && <tr><td colSpan={6}><Output of={e} /></td></tr>}
    </>
  );
}

function RunLine({ sandbox }: { sandbox: string }) {
  const [line, setLine] = useState("");
  const run = (e: Event) => {
    e.preventDefault();
    void act(text.command.run, () => call("execCreate", { id: sandbox }, { command: line, background: true } as never)).then((ok) => ok && setLine(""));
  };
  return <form class="inline" onSubmit={run}><input class="mono" value={line} placeholder={text.command.line} aria-label={text.command.line} onInput={(e) => setLine(e.currentTarget.value)} /><button class="primary" disabled={!line}>{text.command.run}</button></form>;
}

export function Commands({ of: s }: { of: Sandbox }) {
  const { execs, error } = useExecs(s.id);
  const [open, setOpen] = useState("");
  return (
    <>
      {may("execCreate") && s.state === "running" && <RunLine sandbox={s.id} />}
      <Loaded items={execs} error={error} empty={text.command.none}>
        {(items) => <table class="commands"><tbody>{items.map((e) => <Row key={e.id} of={e} open={open === e.id} toggle={() => setOpen(open === e.id ? "" : e.id)} />)}</tbody></table>}
      </Loaded>
    </>
  );
}
