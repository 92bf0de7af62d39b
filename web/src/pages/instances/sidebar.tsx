// The live list of instances beside every page.
import { useState } from "preact/hooks";
import type { Sandbox } from "../../api/types";
import { need, sandboxes } from "../../live/store";
import { Loaded, RuntimeBadge, State } from "../../parts/ui";
import { link, place } from "../../router";
import { text } from "../../text";
import { InstanceActions, nameOf } from "./actions";

const SHOWN = 200; // rows; the page of instances has all of them

export function sortedInstances(): Sandbox[] | undefined {
  const all = need(sandboxes);
  return all && [...all.values()].sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
}

export function matchesFilter(s: Sandbox, filter: string): boolean {
  const words = [nameOf(s), s.id, s.state, s.runtime, s.image, s.agent ?? "", ...Object.entries(s.labels).map(([k, v]) => `${k}=${v}`)].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => words.includes(word));
}

function Row({ of: s }: { of: Sandbox }) {
  const isOpen = place.value.path[0] === "instances" && place.value.path[1] === s.id;
  return (
    <li class={isOpen ? "open" : undefined} data-id={s.id}>
      <a href={link("instances", s.id)} aria-current={isOpen ? "true" : undefined}>
        <RuntimeBadge of={s.runtime} /> <span class="grow">{nameOf(s)}</span> <State of={s.state} />
      </a>
      {isOpen && <InstanceActions of={s} />}
    </li>
  );
}

export function InstanceList() {
  const [filter, setFilter] = useState("");
  const all = sortedInstances()?.filter((s) => matchesFilter(s, filter));
  return (
    <section class="instance-list" aria-label={text.nav.instances}>
      <input type="search" placeholder={text.common.search} aria-label={`${text.common.search}: ${text.nav.instances}`} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
      <Loaded items={all} error={sandboxes.error.value} empty={text.instance.noMatch}>
        {(items) => <ul>{items.slice(0, SHOWN).map((s) => <Row key={s.id} of={s} />)}</ul>}
      </Loaded>
    </section>
  );
}
