// What differs between two states: a list of files, packages, services, users and commands, and the text of the chosen one.
import { useState } from "preact/hooks";
import type { Diff } from "../../api/types";
import { size } from "../../parts/format";
import { Empty } from "../../parts/ui";
import { text } from "../../text";
import { pairsOf, rowsOf, type Row } from "./hunks";

interface Side {
  type: string;
  mode?: string;
  uid?: number;
  gid?: number;
  size?: number;
  target?: string;
  sha256?: string;
}

export interface Change {
  kind: string;
  what?: string;
  path?: string;
  by?: string[];
  before?: Side | null;
  after?: Side | null;
  binary?: boolean;
  packaged?: boolean;
  diff?: string;
  manager?: string;
  name?: string;
  command?: string;
  exit_code?: number | null;
  attrs?: Record<string, { before: string | null; after: string | null }>;
}

const MARKS: Record<string, string> = { added: "+", changed: "~", removed: "−" };
const SHOWN = 500; // rows of the list

function titleOf(c: Change): string {
  return c.path ?? c.command ?? [c.manager, c.name].filter(Boolean).join(" ");
}

function Unified({ rows }: { rows: readonly Row[] }) {
  return (
    <table class="diff">
      <tbody>
        {rows.map((r, i) => (
          <tr key={i} class={`diff-${r.kind}`}>
            <td class="number">{r.before ?? ""}</td><td class="number">{r.after ?? ""}</td>
            <td><span class="hidden">{r.kind === "added" || r.kind === "removed" ? text.changes.what[r.kind] : ""}</span><span aria-hidden="true">{r.kind === "added" ? "+" : r.kind === "removed" ? "−" : " "}</span>{r.words}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SideBySide({ rows }: { rows: readonly Row[] }) {
  return (
    <table class="diff">
      <tbody>
        {pairsOf(rows).map(({ left, right }, i) => (
          <tr key={i}>
            <td class="number">{left?.before ?? ""}</td><td class={left ? `diff-${left.kind} half` : "half"}>{left?.words ?? ""}</td>
            <td class="number">{right?.after ?? ""}</td><td class={right ? `diff-${right.kind} half` : "half"}>{right?.words ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const FACTS: (keyof Side)[] = ["type", "mode", "uid", "gid", "size", "target", "sha256"];

function shown(side: Side | null | undefined, fact: keyof Side): string {
  const value = side?.[fact];
  if (value === undefined || value === null) return "–";
  return fact === "size" ? size(value as number) : String(value);
}

function Facts({ of: c }: { of: Change }) {
  const rows: [string, string, string][] = c.attrs
    ? Object.entries(c.attrs).map(([name, v]) => [name, v.before ?? "–", v.after ?? "–"])
    : FACTS.map((f): [string, string, string] => [f, shown(c.before, f), shown(c.after, f)]).filter(([, a, b]) => a !== b);
  if (!rows.length) return null;
  return (
    <table>
      <thead><tr><th /><th scope="col">{text.changes.before}</th><th scope="col">{text.changes.after}</th></tr></thead>
      <tbody>{rows.map(([name, a, b]) => <tr key={name}><th scope="row">{name}</th><td><code>{a}</code></td><td><code>{b}</code></td></tr>)}</tbody>
    </table>
  );
}

function Detail({ of: c, wide }: { of: Change; wide: boolean }) {
  const rows = c.diff ? rowsOf(c.diff) : [];
  return (
    <section aria-label={titleOf(c)}>
      <h3><code>{titleOf(c)}</code></h3>
      {c.packaged && <p class="dim">{text.changes.packaged}</p>}
      <Facts of={c} />
      {c.kind === "command" && <p>{text.command.exit} {c.exit_code ?? "–"}</p>}
      {c.binary && <p class="dim">{text.changes.binary}</p>}
      {rows.length > 0 && (wide ? <SideBySide rows={rows} /> : <Unified rows={rows} />)}
    </section>
  );
}

export function DiffView({ of: d }: { of: Diff }) {
  const all = d.changes as unknown as Change[];
  const [at, choose] = useState(0);
  const [kind, setKind] = useState("");
  const [wide, setWide] = useState(false);
  const rows = all.filter((c) => !kind || c.kind === kind);
  const current = rows[Math.min(at, rows.length - 1)];
  const kinds = [...new Set(all.map((c) => c.kind))];
  if (!all.length) return <Empty>{text.changes.none}</Empty>;
  return (
    <>
      <p class="actions">
        <strong>{text.changes.counts(d.files_added, d.files_changed, d.files_removed, d.others)}</strong>
        <label>{text.changes.kind}{" "}
          <select value={kind} onChange={(e) => { setKind(e.currentTarget.value); choose(0); }}>
            <option value="">{text.common.all}</option>
            {kinds.map((k) => <option key={k} value={k}>{text.changes.kinds[k] ?? k}</option>)}
          </select>
        </label>
        <button aria-pressed={wide} onClick={() => setWide(!wide)}>{text.changes.sideBySide}</button>
      </p>
      {d.more && <p class="warning">{text.changes.more}</p>}
      <div class="changes">
        <ul class="change-list" aria-label={text.changes.list}>
          {rows.slice(0, SHOWN).map((c, i) => (
            <li key={i}>
              <button class="quiet" aria-current={c === current ? "true" : undefined} onClick={() => choose(i)}>
                <span class={`mark mark-${c.what ?? "ran"}`} aria-hidden="true">{MARKS[c.what ?? ""] ?? "›"}</span>
                <span class="hidden">{text.changes.what[c.what ?? ""] ?? c.kind}</span>
                {c.kind !== "file" && <span class="badge">{text.changes.kinds[c.kind] ?? c.kind}</span>} {titleOf(c)}
              </button>
            </li>
          ))}
        </ul>
        {current && <Detail of={current} wide={wide} />}
      </div>
      {rows.length > SHOWN && <p class="dim">{text.changes.left(rows.length - SHOWN)}</p>}
    </>
  );
}
