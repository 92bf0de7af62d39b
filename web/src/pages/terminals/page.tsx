// Panes side by side: each a terminal of some instance.
import { Empty } from "../../parts/ui";
import { Pane } from "../../terminal/pane";
import { panes, removePane } from "../../terminal/open";
import { text } from "../../text";

export function TerminalsPage() {
  return (
    <>
      <h1>{text.nav.terminals}</h1>
      {panes.value.length === 0 && <Empty>{text.terminal.wall}</Empty>}
      <div class="panes">
        {panes.value.map((p) => <Pane key={p.exec} sandbox={p.sandbox} exec={p.exec} title={p.title} control={p.control} onClose={() => removePane(p.exec)} />)}
      </div>
    </>
  );
}
