// Resources of an instance while the page is open, drawn as lines.
import type { Sandbox } from "../../api/types";
import { samples, useMeter } from "../../live/meter";
import { Line } from "../../parts/chart";
import { percent, size } from "../../parts/format";
import { Empty, Loading } from "../../parts/ui";
import { text } from "../../text";

const SLOTS = 60;

export function Stats({ of: s }: { of: Sandbox }) {
  useMeter();
  const mine = samples.value.get(s.id) ?? [];
  const last = mine.at(-1)?.stats;
  if (s.state !== "running" && s.state !== "paused") return <Empty>{text.terminal.stopped(s.state)}</Empty>;
  if (!last) return <Loading />;
  return (
    <div class="lines">
      <Line label={text.stats.cpu} slots={SLOTS} values={mine.map((x) => x.cpus)} show={percent} />
      <Line label={text.stats.memory} slots={SLOTS} values={mine.map((x) => x.stats.memory_bytes)} show={size} />
      <Line label={text.stats.processes} slots={SLOTS} values={mine.map((x) => x.stats.pids)} show={String} />
      <Line label={text.stats.disk} slots={SLOTS} values={mine.map((x) => x.stats.disk_bytes)} show={size} />
      <p class="dim">{text.stats.more(size(last.memory_peak_bytes), last.oom_kills, size(last.net_rx_bytes), size(last.net_tx_bytes))}</p>
    </div>
  );
}
