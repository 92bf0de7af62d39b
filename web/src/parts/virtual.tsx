// A table that draws only the rows in view: ten thousand cost what forty do.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const ROW = 36; // pixels, as .fixed-row has it
const SPARE = 10;

export function VirtualRows<T>({ head, numbers = [], rows, row }: {
  head: readonly string[]; /** The columns of numbers: aligned at the right. */ numbers?: readonly string[]; rows: readonly T[]; row: (item: T) => ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: 60 });
  useEffect(() => {
    const e = box.current;
    if (!e) return undefined;
    const look = () => setRange({ first: Math.max(0, Math.floor(e.scrollTop / ROW) - SPARE), last: Math.ceil((e.scrollTop + e.clientHeight) / ROW) + SPARE });
    const observer = new ResizeObserver(look);
    observer.observe(e);
    e.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      e.removeEventListener("scroll", look);
    };
  }, []);
  const last = Math.min(range.last, rows.length);
  const first = Math.min(range.first, last);
  return (
    <div class="scroll" ref={box} tabIndex={0} role="region" aria-label={head.filter(Boolean).join(", ")}>
      <table aria-rowcount={rows.length}>
        <thead><tr>{head.map((h) => <th key={h} scope="col" class={numbers.includes(h) ? "number" : undefined}>{h}</th>)}</tr></thead>
        <tbody>
          {first > 0 && <tr aria-hidden="true"><td colSpan={head.length} style={{ height: `${first * ROW}px` }} /></tr>}
          {rows.slice(first, last).map(row)}
          {last < rows.length && <tr aria-hidden="true"><td colSpan={head.length} style={{ height: `${(rows.length - last) * ROW}px` }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}
