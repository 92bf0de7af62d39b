// The wall: the screens of all sessions that run, to see every agent at a glance.
import { useEffect } from "preact/hooks";
import { execChanged, need, sandboxes, sessions } from "../../live/store";
import { Loaded } from "../../parts/ui";
import { go } from "../../router";
import { addPane } from "../../terminal/open";
import { Tile } from "../../terminal/tile";
import { text } from "../../text";

export function Wall() {
  const all = need(sessions);
  const boxes = need(sandboxes);
  const changed = execChanged.value;
  useEffect(() => void (changed && sessions.load()), [changed?.id, changed?.state]);
  return (
    <Loaded items={all && [...all.values()]} error={sessions.error.value} empty={text.terminal.noSessions}>
      {(items) => (
        <div class="wall">
          {items.map((s) => {
            const title = `${boxes?.get(s.sandbox)?.name ?? s.sandbox} · ${s.name}`;
            const open = () => {
              addPane({ sandbox: s.sandbox, exec: s.id, title, control: false });
              go("terminals");
            };
            return <Tile key={s.id} session={s} title={title} onOpen={open} />;
          })}
        </div>
      )}
    </Loaded>
  );
}
