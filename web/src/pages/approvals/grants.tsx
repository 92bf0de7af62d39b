// Grants: what approved questions still permit, until when, and the way to take it back.
import { useEffect, useState } from "preact/hooks";
import { call, type ApiError } from "../../api/client";
import type { Grant } from "../../api/types";
import { may } from "../../live/session";
import { recent } from "../../live/store";
import { now } from "../../parts/clock";
import { duration } from "../../parts/format";
import { act } from "../../parts/notices";
import { Loaded } from "../../parts/ui";
import { text } from "../../text";

/** What it permits: the exact action, or everything within its rule. */
function scopeOf(g: Grant): string {
  return [g.operation, g.sandbox ?? "", g.pattern ?? "", g.hash ? text.grants.exact : ""].filter(Boolean).join(" · ");
}

export function Grants() {
  const [grants, setGrants] = useState<Grant[]>();
  const [error, setError] = useState<ApiError>();
  const load = () => call("grantList", {}).then((r) => setGrants(r.grants), setError);
  const newest = recent.value.find((e) => /^(grant|approval)\./.test(e.type))?.seq;
  useEffect(() => void load(), [newest]);
  const live = grants?.filter((g) => Date.parse(g.expires_at) > now.value);
  return (
    <Loaded items={live} error={error} empty={text.grants.none}>
      {(items) => (
        <table>
          <thead><tr>{text.grants.columns.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
          <tbody>
            {items.map((g) => (
              <tr key={g.id}>
                <td>{g.asker}</td><td><code>{scopeOf(g)}</code></td><td class="number">{g.uses === null ? text.common.all : g.uses}</td>
                <td class="number"><span title={g.expires_at}>{duration(Math.max(0, Math.ceil((Date.parse(g.expires_at) - now.value) / 1000)) * 1000)}</span></td><td>{g.created_by}</td>
                <td>{may("grantRevoke") && <button class="danger" onClick={() => void act(text.things.revoke, () => call("grantRevoke", { id: g.id })).then(load)}>{text.things.revoke}</button>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Loaded>
  );
}
