// The keyboard: single keys for places, Ctrl-K for everything, '?' for the list.
import { computed, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { sandboxes } from "../live/store";
import { go, link } from "../router";
import { text } from "../text";
import { Dialog } from "./ui";

interface Key {
  keys: string;
  label: string;
  run: () => void;
}

export const paletteOpen = signal(false);
const helpOpen = signal(false);

const global: Key[] = [
  { keys: "g n", label: text.keys.now, run: () => go("now") },
  { keys: "g i", label: text.keys.instances, run: () => go("instances") },
  { keys: "g a", label: text.keys.approvals, run: () => go("approvals") },
  { keys: "g b", label: text.keys.board, run: () => go("board") },
  { keys: "?", label: text.keys.help, run: () => { helpOpen.value = true; } },
];
const ofPage = signal<readonly Key[]>([]);
const all = computed(() => [...global, ...ofPage.value]);

/** Keys of the page that is shown; they end with it. */
export function useKeys(keys: Key[]): void {
  useEffect(() => {
    ofPage.value = keys;
    return () => {
      ofPage.value = [];
    };
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

let prefix = "";

addEventListener("keydown", (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
    e.preventDefault();
    paletteOpen.value = true;
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e.target) || document.querySelector("dialog[open]")) return;
  const pressed = prefix ? `${prefix} ${e.key}` : e.key;
  const found = all.value.find((k) => k.keys === pressed);
  prefix = !found && all.value.some((k) => k.keys.startsWith(`${pressed} `)) ? pressed : "";
  if (!found) return;
  e.preventDefault();
  found.run();
});

function Help() {
  return (
    <Dialog title={text.keys.title} onClose={() => { helpOpen.value = false; }}>
      <dl class="keys">
        <div><dt><kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>{text.keys.palette}</dd></div>
        {all.value.map((k) => <div key={k.keys}><dt><kbd>{k.keys}</kbd></dt><dd>{k.label}</dd></div>)}
      </dl>
    </Dialog>
  );
}

interface Goal {
  label: string;
  href: string;
}

function goals(): Goal[] {
  const pages = Object.entries(text.nav).map(([id, label]) => ({ label, href: link(id) }));
  const boxes = [...(sandboxes.items.value?.values() ?? [])].map((s) => ({ label: `${s.name ?? s.id} — ${s.state}`, href: link("instances", s.id) }));
  return [...pages, { label: text.instance.create, href: link("instances", "new") }, ...boxes];
}

/** Every letter of the query occurs in the label, in order. */
function matches(label: string, query: string): boolean {
  let at = 0;
  const low = label.toLowerCase();
  for (const c of query.toLowerCase().replaceAll(" ", "")) {
    at = low.indexOf(c, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

function Palette() {
  const [query, setQuery] = useState("");
  const [chosen, choose] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const found = goals().filter((g) => matches(g.label, query)).slice(0, 12);
  const close = () => { paletteOpen.value = false; };
  const onKey = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") choose(Math.min(chosen + 1, found.length - 1));
    else if (e.key === "ArrowUp") choose(Math.max(chosen - 1, 0));
    else if (e.key === "Enter" && found[chosen]) {
      location.hash = found[chosen].href;
      close();
    } else return;
    e.preventDefault();
  };
  useEffect(() => input.current?.focus(), []);
  return (
    <Dialog title={text.keys.palette} onClose={close}>
      <input ref={input} value={query} placeholder={text.keys.paletteHint} aria-label={text.keys.paletteHint} onInput={(e) => { setQuery(e.currentTarget.value); choose(0); }} onKeyDown={onKey} />
      <ul class="palette">
        {found.map((g, i) => <li key={g.href}><a href={g.href} aria-current={i === chosen ? "true" : undefined} onClick={close}>{g.label}</a></li>)}
      </ul>
    </Dialog>
  );
}

export function KeyDialogs() {
  return <>{helpOpen.value && <Help />}{paletteOpen.value && <Palette />}</>;
}
