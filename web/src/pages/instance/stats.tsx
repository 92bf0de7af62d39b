// Resources of an instance while the page is open: read every two seconds, drawn as lines.
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Sandbox, SandboxStats } from "../../api/types";
import { size } from "../../parts/format";
import { Empty, Loading } from "../../parts/ui";
import { text } from "../../text";

const EVERY_MS = 2000;
const KEPT = 60;

interface Sample {
  at: number;
  stats: SandboxStats;
}

/** Counters of a cgroup have no events: they are sampled, and only while somebody looks. */
function useSamples(id: string, running: boolean): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => {
    if (!running) return undefined;
    const take = () => void call("sandboxStats", { id }).then((stats) => setSamples((old) => [...old.slice(1 - KEPT), { at: performance.now(), stats }]), () => {});
    take();
    const timer = setInterval(() => !document.hidden && take(), EVERY_MS);
    return () => clearInterval(timer);
  }, [id, running]);
  return samples;
}

function Line({ label, values, show }: { label: string; values: readonly number[]; show: (n: number) => string }) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((v, i) => `${(i / (KEPT - 1)) * 300},${58 - (v / most) * 54}`).join(" ");
  return (
    <figure class="line">
      <figcaption>{label}: <strong>{show(values.at(-1) ?? 0)}</strong></figcaption>
      <svg viewBox="0 0 300 60" role="img" aria-label={`${label}: ${show(values.at(-1) ?? 0)}, at most ${show(most)}`}><polyline points={points} /></svg>
    </figure>
  );
}

function cpuUse(samples: readonly Sample[]): number[] {
  return samples.slice(1).map((s, i) => {
    const before = samples[i] as Sample;
    return (s.stats.cpu_us - before.stats.cpu_us) / 1000 / (s.at - before.at);
  });
}

export function Stats({ of: s }: { of: Sandbox }) {
  const samples = useSamples(s.id, s.state === "running");
  const last = samples.at(-1)?.stats;
  if (s.state !== "running") return <Empty>{text.terminal.stopped(s.state)}</Empty>;
  if (!last) return <Loading />;
  return (
    <div class="lines">
      <Line label="CPU" values={cpuUse(samples)} show={(n) => `${(n * 100).toFixed(0)} %`} />
      <Line label={text.instance.memory} values={samples.map((x) => x.stats.memory_bytes)} show={size} />
      <Line label="Processes" values={samples.map((x) => x.stats.pids)} show={String} />
      <Line label="Disk" values={samples.map((x) => x.stats.disk_bytes)} show={size} />
      <p class="dim">Peak memory {size(last.memory_peak_bytes)} · out-of-memory kills {last.oom_kills} · received {size(last.net_rx_bytes)} · sent {size(last.net_tx_bytes)}</p>
    </div>
  );
}
