// All instances as a table, with actions on several of them at once.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Sandbox } from "../../api/types";
import { samples, useMeter } from "../../live/meter";
import { may } from "../../live/session";
import { sandboxes } from "../../live/store";
import { Spark } from "../../parts/chart";
import { percent, size } from "../../parts/format";
import { act } from "../../parts/notices";
import { Confirm, Loaded, RuntimeBadge, State, Time } from "../../parts/ui";
import { VirtualRows } from "../../parts/virtual";
import { link, place, setQuery } from "../../router";
import { text } from "../../text";
import { nameOf } from "./actions";
import { matchesFilter, sortedInstances } from "./sidebar";

const SLOTS = 60;
const WHOLE_CPU = 1;

/** Two cells: processors and memory, now and in the last two minutes. */
function Use({ of: s }: { of: Sandbox }) {
  const mine = samples.value.get(s.id) ?? [];
  const last = mine.at(-1);
  const limit = s.limits["memory_bytes"] as number | null;
  if (!last) return <><td class="number">–</td><td class="number">{limit ? text.stats.ofLimit("–", size(limit)) : "–"}</td></>;
  const memory = size(last.stats.memory_bytes);
  return (
    <>
      <td class="number"><Spark label={`${text.stats.cpu} ${percent(last.cpus)}`} slots={SLOTS} floor={WHOLE_CPU} values={mine.map((x) => x.cpus)} />{percent(last.cpus)}</td>
      <td class="number">
        <Spark label={`${text.stats.memory} ${memory}`} slots={SLOTS} floor={limit ?? 0} values={mine.map((x) => x.stats.memory_bytes)} />
        {limit ? text.stats.ofLimit(memory, size(limit)) : memory}
      </td>
    </>
  );
}

function Row({ of: s, chosen, choose }: { of: Sandbox; chosen: boolean; choose: (on: boolean) => void }) {
  return (
    <tr key={s.id} class="fixed-row">
      <td><input type="checkbox" checked={chosen} aria-label={nameOf(s)} onChange={(e) => choose(e.currentTarget.checked)} /></td>
      <td><RuntimeBadge of={s.runtime} /> <a href={link("instances", s.id)}>{nameOf(s)}</a></td>
      <td><State of={s.state} /></td>
      <Use of={s} />
      <td>{s.image}</td>
      <td>{String(s.network["mode"] ?? "")}</td>
      <td class="number">{s.execs_live}</td>
      <td>{s.agent ?? ""}</td>
      <td><Time at={s.created_at} /></td>
    </tr>
  );
}

const COLUMNS = ["", ...text.stats.columns];
const NUMBERS = [text.stats.cpu, text.stats.memory, "Commands"];

function Bulk({ ids, done }: { ids: readonly string[]; done: () => void }) {
  const [asking, ask] = useState(false);
  const each = (what: string, run: (id: string) => Promise<unknown>) => act(what, () => Promise.all(ids.map(run))).then(done);
  return (
    <span class="actions" role="toolbar" aria-label={text.common.selected(ids.length)}>
      {text.common.selected(ids.length)}
      <button onClick={() => void each(text.instance.stop, (id) => call("sandboxStop", { id }, {}))}>{text.instance.stop}</button>
      <button onClick={() => void each(text.instance.start, (id) => call("sandboxStart", { id }))}>{text.instance.start}</button>
      <button class="danger" onClick={() => ask(true)}>{text.instance.remove}</button>
      {asking && <Confirm question={text.instance.lostMany(ids.length)} verb={text.instance.remove} onYes={() => void each(text.instance.remove, (id) => call("sandboxDestroy", { id }))} onClose={() => ask(false)} />}
    </span>
  );
}

export function InstancesPage() {
  useMeter();
  const filter = place.value.query.get("q") ?? "";
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const items = sortedInstances()?.filter((s) => matchesFilter(s, filter));
  const choose = (id: string, on: boolean) => setChosen((old) => {
    const next = new Set(old);
    if (on) next.add(id);
    else next.delete(id);
    return next;
  });
  return (
    <>
      <header class="page-head">
        <h1>{text.nav.instances}</h1>
        <input type="search" value={filter} placeholder={text.common.filter} aria-label={text.common.filter} onInput={(e) => setQuery("q", e.currentTarget.value)} />
        {chosen.size > 0 && may("sandboxStop") && <Bulk ids={[...chosen]} done={() => setChosen(new Set())} />}
      </header>
      <Loaded items={items} error={sandboxes.error.value} empty={filter ? text.instance.noMatch : text.now.empty}>
        {(rows) => <VirtualRows head={COLUMNS} numbers={NUMBERS} rows={rows} row={(s) => <Row of={s} chosen={chosen.has(s.id)} choose={(on) => choose(s.id, on)} />} />}
      </Loaded>
    </>
  );
}
