// Who writes to whom: agents on a circle, a line per pair, as thick as it is busy.
import type { MessageEdge } from "../../api/types";

const SIDE = 480;
const MIDDLE = SIDE / 2;
const RADIUS = 180;

interface Point {
  x: number;
  y: number;
}

function placeNames(names: readonly string[]): Map<string, Point> {
  return new Map(names.map((name, i) => {
    const angle = (i / names.length) * 2 * Math.PI - Math.PI / 2;
    return [name, { x: MIDDLE + RADIUS * Math.cos(angle), y: MIDDLE + RADIUS * Math.sin(angle) }];
  }));
}

/** A line bent towards the middle, so that both directions of a pair can be told apart. */
function bend(a: Point, b: Point): string {
  const mx = (a.x + b.x) / 2 + (MIDDLE - (a.x + b.x) / 2) * 0.3 + (b.y - a.y) * 0.08;
  const my = (a.y + b.y) / 2 + (MIDDLE - (a.y + b.y) / 2) * 0.3 - (b.x - a.x) * 0.08;
  return `M${a.x},${a.y} Q${mx},${my} ${b.x},${b.y}`;
}

export function FlowGraph({ edges }: { edges: readonly MessageEdge[] }) {
  const names = [...new Set(edges.flatMap((e) => [e.from, e.to]))].sort();
  const at = placeNames(names);
  const most = Math.max(...edges.map((e) => e.count));
  return (
    <>
      <svg class="graph" viewBox={`0 0 ${SIDE} ${SIDE}`} role="img" aria-label={edges.map((e) => `${e.from} to ${e.to}: ${e.count}`).join("; ")}>
        {edges.map((e) => {
          const a = at.get(e.from);
          const b = at.get(e.to);
          return a && b && <path key={`${e.from} ${e.to}`} d={bend(a, b)} stroke-width={1 + (4 * e.count) / most}><title>{`${e.from} → ${e.to}: ${e.count}`}</title></path>;
        })}
        {names.map((name) => {
          const p = at.get(name) as Point;
          return <g key={name}><circle cx={p.x} cy={p.y} r={6} /><text x={p.x + (p.x < MIDDLE ? -10 : 10)} y={p.y + 4} text-anchor={p.x < MIDDLE ? "end" : "start"}>{name.slice(0, 20)}</text></g>;
        })}
      </svg>
    </>
  );
}
