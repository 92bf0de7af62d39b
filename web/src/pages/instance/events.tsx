// What happened to one instance.
import { useEffect, useState } from "preact/hooks";
import { call, type ApiError } from "../../api/client";
import type { Event, Sandbox } from "../../api/types";
import { recent } from "../../live/store";
import { Ref } from "../../parts/ref";
import { Loaded, Time } from "../../parts/ui";
import { text } from "../../text";

export function InstanceEvents({ of: s }: { of: Sandbox }) {
  const [old, setOld] = useState<Event[]>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    call("eventList", { object: `sandbox/${s.id}`, limit: 1000 }).then((r) => setOld([...r.events].reverse()), setError);
  }, [s.id]);
  const fresh = recent.value.filter((e) => e.object === `sandbox/${s.id}` && e.seq > (old?.[0]?.seq ?? 0));
  return (
    <Loaded items={old && [...fresh, ...old]} error={error} empty={text.common.none}>
      {(items) => <table class="events"><tbody>{items.map((e) => <tr key={e.seq}><td><Time at={e.time} /></td><td><code>{e.type}</code></td><td><Ref to={e.actor} /></td></tr>)}</tbody></table>}
    </Loaded>
  );
}
