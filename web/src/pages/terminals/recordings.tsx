// Recordings: every session whose output is kept, running or ended, to be played again.
import { useEffect, useState } from "preact/hooks";
import { call, listAll, type ApiError } from "../../api/client";
import type { TerminalSession } from "../../api/types";
import { execChanged, need, sandboxes } from "../../live/store";
import { duration, shellLine, size } from "../../parts/format";
import { Loaded, State, Time } from "../../parts/ui";
import { Replay } from "../../terminal/replay";
import { text } from "../../text";

function useAllSessions(): [TerminalSession[] | undefined, ApiError | undefined] {
  const [items, setItems] = useState<TerminalSession[]>();
  const [error, setError] = useState<ApiError>();
  const changed = execChanged.value;
  useEffect(() => {
    listAll(async (cursor) => {
      const r = await call("sessionListAll", { all: true, limit: 1000, ...(cursor ? { cursor } : {}) });
      return { items: r.sessions, cursor: r.cursor };
    }).then(setItems, setError);
  }, [changed?.id, changed?.state]);
  return [items, error];
}

function lasted(s: TerminalSession): number | null {
  return s.ended_at ? Date.parse(s.ended_at) - Date.parse(s.created_at) : null;
}

export function Recordings() {
  const [items, error] = useAllSessions();
  const boxes = need(sandboxes);
  const [shown, show] = useState<TerminalSession>();
  const titleOf = (s: TerminalSession) => `${boxes?.get(s.sandbox)?.name ?? s.sandbox} · ${s.name}`;
  return (
    <>
      {shown && <Replay key={shown.id} session={shown} title={titleOf(shown)} onClose={() => show(undefined)} />}
      <Loaded items={items && [...items].reverse()} error={error} empty={text.replay.none}>
        {(all) => (
          <table>
            <thead><tr>{text.replay.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
            <tbody>
              {all.map((s) => (
                <tr key={s.id}>
                  <td>{titleOf(s)}</td><td><State of={s.state} /></td><td><code>{shellLine(s.command)}</code></td><td><Time at={s.created_at} /></td><td class="number">{duration(lasted(s))}</td>
                  <td class="number">{size(s.output_bytes)}</td><td><button onClick={() => show(s)}>{text.replay.play}</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </>
  );
}
