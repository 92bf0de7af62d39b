// What all running instances use: asked for every two seconds, in one request for all, while something on the page shows it.
//
// There is a stream of it, but a browser has six connections to a server, and every tab keeps one for its events already.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError, call } from "../api/client";
import type { SandboxStats } from "../api/types";

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

const KEPT = 60; // samples of one instance: two minutes
const TOTALS_KEPT = 450; // a quarter of an hour
const EVERY_MS = 2000;

/** The newest samples of each running instance, oldest first. */
export const samples = signal<ReadonlyMap<string, readonly Sample[]>>(new Map());
export const totals = signal<readonly Total[]>([]);

function added(old: readonly Sample[], at: number, stats: SandboxStats): readonly Sample[] {
  const before = old.at(-1);
  const took = before ? at - before.at : 0;
  const cpus = before && took > 0 ? Math.max(0, (stats.cpu_us - before.stats.cpu_us) / 1000 / took) : 0;
  return [...old.slice(1 - KEPT), { at, cpus, stats }];
}

function apply(at: number, round: readonly SandboxStats[]): void {
  const next = new Map(round.map((stats) => [stats.id, added(samples.value.get(stats.id) ?? [], at, stats)]));
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
      apply(performance.now(), (await call("sandboxStatsList", {})).stats);
    } catch (e) {
      if (e instanceof ApiError && (e.status === 401 || e.status === 403)) return;
    }
    await new Promise((go) => setTimeout(go, EVERY_MS));
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
