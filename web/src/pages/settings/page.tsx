// The settings in force, each with its source; they are changed in the settings file.
import { useEffect, useState } from "preact/hooks";
import { call, type ApiError } from "../../api/client";
import type { Setting } from "../../api/types";
import { Loaded } from "../../parts/ui";
import { place, setQuery } from "../../router";
import { text } from "../../text";

export function SettingsPage() {
  const [items, setItems] = useState<Setting[]>();
  const [error, setError] = useState<ApiError>();
  const filter = place.value.query.get("q") ?? "";
  useEffect(() => {
    call("settingsList", {}).then((r) => setItems(r.settings), setError);
  }, []);
  const rows = items?.filter((s) => `${s.key} ${s.text}`.toLowerCase().includes(filter.toLowerCase()));
  return (
    <>
      <header class="page-head">
        <h1>{text.settings.title}</h1>
        <input type="search" value={filter} placeholder={text.common.filter} aria-label={text.common.filter} onInput={(e) => setQuery("q", e.currentTarget.value)} />
      </header>
      <Loaded items={rows} error={error} empty={text.instance.noMatch}>
        {(list) => (
          <table>
            <thead><tr><th scope="col">{text.instance.name}</th><th scope="col">{text.settings.value}</th><th scope="col">{text.settings.source}</th><th scope="col" /></tr></thead>
            <tbody>{list.map((s) => <tr key={s.key}><td><code>{s.key}</code></td><td><code>{String(s.value ?? "–")}</code></td><td>{s.source}</td><td class="dim">{s.text}</td></tr>)}</tbody>
          </table>
        )}
      </Loaded>
    </>
  );
}
