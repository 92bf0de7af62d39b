// What all running instances use, from the stream of stats: followed only while something on the page shows it.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, pathOf } from "../api/client";
import type { SandboxStats } from "../api/types";
import { readMessages } from "./sse";
import { sandboxes } from "./store";

/** Use at one moment: processors (1 is a whole one), and what the stats say. */
export interface Sample {
  at: number;
  cpus: number;
  stats: SandboxStats;
}

export interface Total {
  at: number;
  cpus: number;
  memory: number;
}

interface Round {
  at: string;
  all: boolean;
  stats: SandboxStats[];
}

const KEPT = 60; // samples of one instance: two minutes
const TOTALS_KEPT = 450; // a quarter of an hour
const RETRY_MS = 2000;

/** The newest samples of each running instance, oldest first. */
export const samples = signal<ReadonlyMap<string, readonly Sample[]>>(new Map());
export const totals = signal<readonly Total[]>([]);

function added(old: readonly Sample[], at: number, stats: SandboxStats): readonly Sample[] {
  const before = old.at(-1);
  const took = before ? at - before.at : 0;
  const cpus = before && took > 0 ? Math.max(0, (stats.cpu_us - before.stats.cpu_us) / 1000 / took) : 0;
  return [...old.slice(1 - KEPT), { at, cpus, stats }];
}

/** Nobody says that an instance is not measured any more: its state does. */
function isUp(id: string): boolean {
  const state = sandboxes.items.value?.get(id)?.state;
  return state === undefined || state === "running" || state === "paused";
}

/** An instance that an event leaves out has used no processor since the last one. */
function apply(round: Round): void {
  const at = Date.parse(round.at);
  const fresh = new Map(round.stats.map((s) => [s.id, s]));
  const next = new Map<string, readonly Sample[]>();
  for (const id of new Set([...(round.all ? [] : samples.value.keys()), ...fresh.keys()])) {
    const old = samples.value.get(id) ?? [];
    const stats = fresh.get(id) ?? old.at(-1)?.stats;
    if (stats && isUp(id)) next.set(id, added(old, at, stats));
  }
  const last = [...next.values()].map((list) => list.at(-1)).filter((s) => s !== undefined);
  samples.value = next;
  totals.value = [...totals.value.slice(1 - TOTALS_KEPT), {
    at,
    cpus: last.reduce((sum, s) => sum + s.cpus, 0),
    memory: last.reduce((sum, s) => sum + s.stats.memory_bytes, 0),
  }];
}

async function follow(stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      for await (const message of readMessages(pathOf("sandboxStatsList", { follow: true }), "", stop)) apply(JSON.parse(message.data) as Round);
    } catch (e) {
      if (e instanceof ApiError && (e.status === 401 || e.status === 403)) return;
    }
    if (!stop.aborted) await new Promise((go) => setTimeout(go, RETRY_MS));
  }
}

let users = 0;
let running: AbortController | undefined;

/** A hidden page watches nothing. */
function update(): void {
  if (users > 0 && !document.hidden) {
    if (running) return;
    running = new AbortController();
    void follow(running.signal);
  } else {
    running?.abort();
    running = undefined;
  }
}
document.addEventListener("visibilitychange", update);

/** Follows the stats as long as the component is on the page. */
export function useMeter(): void {
  useEffect(() => {
    users++;
    update();
    return () => {
      users--;
      update();
    };
  }, []);
}
