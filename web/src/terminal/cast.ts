// A recording (asciicast v2) as a list of moments that can be played, and searched for a place.
export interface Moment {
  at: number; // seconds from the beginning
  kind: "o" | "r"; // output, resize
  data: string;
}

export interface Cast {
  cols: number;
  rows: number;
  length: number;
  moments: Moment[];
}

export function parseCast(body: string): Cast {
  const [head = "{}", ...rest] = body.split("\n").filter(Boolean);
  const { width = 80, height = 24 } = JSON.parse(head) as { width?: number; height?: number };
  const moments: Moment[] = [];
  for (const line of rest) {
    const [at, kind, data] = JSON.parse(line) as [number, string, string];
    if (kind === "o" || kind === "r") moments.push({ at, kind, data });
  }
  return { cols: width, rows: height, length: moments.at(-1)?.at ?? 0, moments };
}

/** The number of moments that have happened at a time. */
export function countUntil(cast: Cast, at: number): number {
  let low = 0;
  let high = cast.moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cast.moments[middle] as Moment).at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}
