// The log of everything that happened, live, with the proof that nobody altered it.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Event } from "../../api/types";
import { may } from "../../live/session";
import { recent } from "../../live/store";
import { act, notify } from "../../parts/notices";
import { Ref } from "../../parts/ref";
import { Dialog, Empty, Time } from "../../parts/ui";
import { place, setQuery } from "../../router";
import { text } from "../../text";

function matches(e: Event, filter: string): boolean {
  const words = `${e.type} ${e.object} ${e.actor}`.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((w) => words.includes(w));
}

async function verify(): Promise<void> {
  const r = await call("auditVerify", {});
  if (r.ok) notify("done", text.events.verified(r.checked));
  else notify("failed", text.events.broken(String(r.broken_seq), r.broken_why ?? ""));
}

function Detail({ of: e, onClose }: { of: Event; onClose: () => void }) {
  return (
    <Dialog title={`${e.type} · ${e.seq}`} onClose={onClose}>
      <p><Time at={e.time} /> · <code>{e.object}</code> · <Ref to={e.actor} /></p>
      <pre class="json">{JSON.stringify(e.data, null, 2)}</pre>
      <p class="dim">{e.hash}</p>
    </Dialog>
  );
}

export function EventsPage() {
  const filter = place.value.query.get("q") ?? "";
  const [held, hold] = useState<readonly Event[]>();
  const [shown, show] = useState<Event>();
  const [older, setOlder] = useState<readonly Event[]>([]);
  const live = held ?? recent.value;
  const known = new Set(live.map((e) => e.seq));
  const rows = [...live, ...older.filter((e) => !known.has(e.seq))].filter((e) => matches(e, filter));
  const fresh = held ? recent.value.findIndex((e) => e.seq === held[0]?.seq) : 0;
  const oldest = Math.min(...[...live, ...older].map((e) => e.seq));
  const more = () => act(text.events.older, async () => {
    const page = await call("eventList", { since: Math.max(0, oldest - 201), limit: 200 });
    setOlder([...older, ...page.events.filter((e) => e.seq < oldest).reverse()]);
  });
  return (
    <>
      <header class="page-head">
        <h1>{text.events.title}</h1>
        <input type="search" value={filter} placeholder={text.common.filter} aria-label={text.common.filter} onInput={(e) => setQuery("q", e.currentTarget.value)} />
        <button onClick={() => hold(held ? undefined : recent.value)}>{held ? `${text.events.resume} (${text.events.fresh(fresh)})` : text.events.pause}</button>
        {may("auditVerify") && <button onClick={() => void act(text.events.verify, verify)}>{text.events.verify}</button>}
      </header>
      {rows.length === 0 && <Empty>{text.instance.noMatch}</Empty>}
      <table class="events">
        <thead><tr><th scope="col">#</th><th scope="col">{text.events.time}</th><th scope="col">{text.events.type}</th><th scope="col">{text.events.object}</th><th scope="col">{text.events.actor}</th></tr></thead>
        <tbody>
          {rows.map((e) => (
            <tr key={e.seq}>
              <td class="number">{e.seq}</td><td><Time at={e.time} /></td>
              <td><button class="quiet" onClick={() => show(e)}><code>{e.type}</code></button></td><td><Ref to={e.object} /></td><td><Ref to={e.actor} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {oldest > 1 && <button onClick={() => void more()}>{text.events.older}</button>}
      {shown && <Detail of={shown} onClose={() => show(undefined)} />}
    </>
  );
}
