// Unified diffs as rows: each line with its numbers before and after.
export interface Row {
  kind: "same" | "added" | "removed" | "hunk";
  before?: number;
  after?: number;
  words: string;
}

const HEAD = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

export function rowsOf(diff: string): Row[] {
  const rows: Row[] = [];
  let before = 0;
  let after = 0;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const head = HEAD.exec(line);
    const words = line.slice(1);
    if (head) {
      before = Number(head[1]);
      after = Number(head[2]);
      rows.push({ kind: "hunk", words: line });
    } else if (line.startsWith("+")) rows.push({ kind: "added", after: after++, words });
    else if (line.startsWith("-")) rows.push({ kind: "removed", before: before++, words });
    else if (line.startsWith("\\")) rows.push({ kind: "hunk", words });
    else rows.push({ kind: "same", before: before++, after: after++, words });
  }
  return rows;
}

export interface Pair {
  left?: Row | undefined;
  right?: Row | undefined;
}

/** The same side by side: removed lines stand beside the added ones that replace them. */
export function pairsOf(rows: readonly Row[]): Pair[] {
  const pairs: Pair[] = [];
  let removed: Row[] = [];
  let added: Row[] = [];
  const flush = (): void => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) pairs.push({ left: removed[i], right: added[i] });
    removed = [];
    added = [];
  };
  for (const row of rows) {
    if (row.kind === "removed") removed.push(row);
    else if (row.kind === "added") added.push(row);
    else {
      flush();
      pairs.push({ left: row, right: row });
    }
  }
  flush();
  return pairs;
}
