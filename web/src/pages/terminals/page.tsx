// Terminals: panes side by side, the wall of all sessions, and their recordings.
import { Empty, Tabs } from "../../parts/ui";
import { link, place } from "../../router";
import { Pane } from "../../terminal/pane";
import { panes, removePane } from "../../terminal/open";
import { text } from "../../text";
import { Recordings } from "./recordings";
import { Wall } from "./wall";

function Panes() {
  return (
    <>
      {panes.value.length === 0 && <Empty>{text.terminal.noPane}</Empty>}
      <div class="panes">
        {panes.value.map((p) => <Pane key={p.exec} sandbox={p.sandbox} exec={p.exec} title={p.title} control={p.control} onClose={() => removePane(p.exec)} />)}
      </div>
    </>
  );
}

export function TerminalsPage() {
  const tab = place.value.path[1] ?? "panes";
  return (
    <>
      <h1>{text.nav.terminals}</h1>
      <Tabs tabs={{ panes: text.terminal.panes, wall: text.terminal.wall, recordings: text.replay.title }} current={tab} href={(t) => (t === "panes" ? link("terminals") : link("terminals", t))} />
      {tab === "wall" ? <Wall /> : tab === "recordings" ? <Recordings /> : <Panes />}
    </>
  );
}
