// Numbers, sizes and times as people read them.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "–";
  let n = bytes;
  let unit = 0;
  while (n >= 1024 && unit < UNITS.length - 1) {
    n /= 1024;
    unit++;
  }
  return `${unit === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Of one processor: 0.5 is 50 %. */
export function percent(part: number): string {
  return `${(part * 100).toFixed(0)} %`;
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [[60, "second"], [3600, "minute"], [86400, "hour"], [Infinity, "day"]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });

export function ago(time: string, now: number): string {
  const seconds = Math.round((Date.parse(time) - now) / 1000);
  let divisor = 1;
  for (const [limit, unit] of STEPS) {
    if (Math.abs(seconds) < limit) return relative.format(Math.trunc(seconds / divisor), unit);
    divisor = limit;
  }
  return time;
}

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
}

/** A command as a person would type it. */
export function shellLine(argv: readonly unknown[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(String(word)) ? String(word) : `'${String(word).replaceAll("'", "'\\''")}'`)).join(" ");
}
