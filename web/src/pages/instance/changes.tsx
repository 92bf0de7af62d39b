// What has changed in an instance since it was made, or since one of its snapshots.
import { call } from "../../api/client";
import type { Sandbox } from "../../api/types";
import { need, snapshots } from "../../live/store";
import { Loading, Problem } from "../../parts/ui";
import { place, setQuery } from "../../router";
import { text } from "../../text";
import { useDiff } from "../changes/compare";
import { DiffView } from "../changes/viewer";

export function Changes({ of: s }: { of: Sandbox }) {
  const from = place.value.query.get("from") ?? "";
  const taken = [...(need(snapshots)?.values() ?? [])].filter((one) => one.sandbox === s.id);
  const read = () => call("sandboxDiff", { id: s.id, ...(from ? { from } : {}) });
  const { diff, error, busy } = useDiff(read, `${s.id} ${from}`);
  return (
    <>
      <label>{text.changes.since}{" "}
        <select value={from} onChange={(e) => setQuery("from", e.currentTarget.value)}>
          <option value="">{text.changes.sinceMade}</option>
          {taken.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
        </select>
      </label>
      {error && <Problem error={error} />}
      {busy && <Loading />}
      {diff && <DiffView key={from} of={diff} />}
    </>
  );
}
