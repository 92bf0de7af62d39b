// Files of an instance: walk, look, edit, upload, download.
import { useEffect, useState } from "preact/hooks";
import { call, callRaw, pathOf, type ApiError } from "../../api/client";
import type { File as Entry, Sandbox } from "../../api/types";
import { may } from "../../live/session";
import { size } from "../../parts/format";
import { act } from "../../parts/notices";
import { Dialog, Empty, Loaded, Time } from "../../parts/ui";
import { place, setQuery } from "../../router";
import { text } from "../../text";

const EDIT_MOST = 1024 * 1024;

function join(dir: string, name: string): string {
  return dir === "/" ? `/${name}` : `${dir}/${name}`;
}

function parentOf(path: string): string {
  return path.replace(/\/[^/]*$/, "") || "/";
}

function Editor({ sandbox, path, onClose }: { sandbox: string; path: string; onClose: () => void }) {
  const [content, setContent] = useState<string>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    callRaw("fileRead", { id: sandbox, path }).then(async (r) => {
      const bytes = new Uint8Array(await r.arrayBuffer());
      if (bytes.includes(0)) setProblem(text.files.binary);
      else setContent(new TextDecoder().decode(bytes));
    }, (e: Error) => setProblem(e.message));
  }, [sandbox, path]);
  const save = () => act(text.common.save, () => callRaw("fileWrite", { id: sandbox, path }, content ?? ""), text.files.saved(path)).then((ok) => ok && onClose());
  return (
    <Dialog title={path} onClose={onClose}>
      {problem && <p class="problem">{problem}</p>}
      {content !== undefined && <textarea class="editor" spellcheck={false} value={content} aria-label={path} readOnly={!may("fileWrite")} onInput={(e) => setContent(e.currentTarget.value)} />}
      <footer>
        <a class="button" href={pathOf("fileRead", { id: sandbox, path })} download={path.split("/").pop()}>{text.common.download}</a>
        {content !== undefined && may("fileWrite") && <button class="primary" onClick={() => void save()}>{text.common.save}</button>}
      </footer>
    </Dialog>
  );
}

function upload(sandbox: string, dir: string, files: FileList | null | undefined, done: () => void): void {
  const all = [...(files ?? [])].map((f) => callRaw("fileWrite", { id: sandbox, path: join(dir, f.name) }, f));
  if (all.length) void act(text.files.upload, () => Promise.all(all)).then(done);
}

function Row({ of: f, path, open }: { of: Entry; path: string; open: () => void }) {
  return (
    <tr>
      <td><button class="quiet" onClick={open}>{f.kind === "directory" ? "📁" : "📄"} {f.name}{f.link && <span class="dim"> → {f.link}</span>}</button></td>
      <td class="number">{f.kind === "file" ? size(f.size) : ""}</td><td><code>{f.mode}</code></td><td><Time at={f.modified_at} /></td><td class="dim">{path && f.kind}</td>
    </tr>
  );
}

export function Files({ of: s }: { of: Sandbox }) {
  const dir = place.value.query.get("path") ?? "/";
  const [list, setList] = useState<Entry[]>();
  const [error, setError] = useState<ApiError>();
  const [shown, show] = useState("");
  const load = () => call("fileList", { id: s.id, path: dir }).then((r) => { setList(r.files); setError(undefined); }, (e: ApiError) => { setList(undefined); setError(e); });
  useEffect(() => {
    setList(undefined);
    if (s.state === "running") void load();
  }, [s.id, dir, s.state]);
  if (s.state !== "running") return <Empty>{text.terminal.stopped(s.state)}</Empty>;
  const open = (f: Entry) => {
    const path = join(dir, f.name);
    if (f.kind === "directory" || (f.kind === "symlink" && !f.link?.includes("."))) setQuery("path", path);
    else if (f.size > EDIT_MOST) location.assign(pathOf("fileRead", { id: s.id, path }));
    else show(path);
  };
  return (
    <div onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); upload(s.id, dir, e.dataTransfer?.files, () => void load()); }}>
      <p class="actions">
        <button disabled={dir === "/"} onClick={() => setQuery("path", parentOf(dir))}>{text.files.up}</button> <code>{dir}</code>
        {may("fileWrite") && <label class="button">{text.files.upload}<input class="hidden" type="file" multiple onChange={(e) => upload(s.id, dir, e.currentTarget.files, () => void load())} /></label>}
        <span class="dim">{may("fileWrite") && text.files.uploadHint}</span>
      </p>
      <Loaded items={list} error={error} empty={text.files.empty}>
        {(items) => (
          <table>
            <thead><tr><th scope="col">{text.files.name}</th><th scope="col">{text.files.size}</th><th scope="col">Mode</th><th scope="col">{text.files.modified}</th><th /></tr></thead>
            <tbody>{items.map((f) => <Row key={f.name} of={f} path={dir} open={() => open(f)} />)}</tbody>
          </table>
        )}
      </Loaded>
      {shown && <Editor sandbox={s.id} path={shown} onClose={() => show("")} />}
    </div>
  );
}
