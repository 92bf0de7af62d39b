// Lines over time: small ones in a row of a table, larger ones with their values.
const WIDTH = 300;
const HEIGHT = 60;

/** Text of the points: the newest at the right, as many slots as are kept. */
function pointsOf(values: readonly number[], slots: number, most: number): string {
  return values.map((v, i) => `${(((slots - values.length + i) / Math.max(slots - 1, 1)) * WIDTH).toFixed(1)},${(HEIGHT - 2 - (v / most) * (HEIGHT - 6)).toFixed(1)}`).join(" ");
}

const LEAST = 1e-9;

export function Line({ label, values, slots, show }: { label: string; values: readonly number[]; slots: number; show: (n: number) => string }) {
  const most = Math.max(...values, LEAST);
  const now = show(values.at(-1) ?? 0);
  return (
    <figure class="line">
      <figcaption>{label}: <strong>{now}</strong> <span class="dim">· most {show(most === LEAST ? 0 : most)}</span></figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${now}, at most ${show(most)}`}>
        <polyline points={pointsOf(values, slots, most)} />
      </svg>
    </figure>
  );
}

/** floor: what fills the height at least, so that noise does not look like load. */
export function Spark({ label, values, slots, floor }: { label: string; values: readonly number[]; slots: number; floor: number }) {
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={pointsOf(values, slots, Math.max(floor, ...values))} />
    </svg>
  );
}
