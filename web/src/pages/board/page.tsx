// The board of a project: six columns, cards that are dragged, moved by menu or by key.
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import type { Project, Task } from "../../api/types";
import { may } from "../../live/session";
import { agents, need, projects, tasks } from "../../live/store";
import { act } from "../../parts/notices";
import { Dialog, Field, Loaded } from "../../parts/ui";
import { link, place, setQuery } from "../../router";
import { text } from "../../text";
import { Card } from "./card";
import { CardDetail } from "./detail";
import { moveTask, type Status } from "./move";

export const COLUMNS = Object.keys(text.board.columns) as Status[];

function ColumnHead({ status, count, limit }: { status: Status; count: number; limit: number | undefined }) {
  const full = limit !== undefined && count >= limit;
  return <h3 class={full ? "full" : undefined}>{text.board.columns[status]} <span class="dim">{limit === undefined ? count : text.board.limit(count, limit)}</span></h3>;
}

function Column({ status, cards, limit, open }: { status: Status; cards: readonly Task[]; limit: number | undefined; open: (id: string) => void }) {
  const [over, setOver] = useState(false);
  const drop = (e: DragEvent) => {
    e.preventDefault();
    setOver(false);
    const id = e.dataTransfer?.getData("text/x-holt-task");
    if (id) void moveTask(id, status);
  };
  return (
    <section class={`column ${over ? "over" : ""}`} data-status={status} aria-label={text.board.columns[status]}
      onDragOver={(e) => { e.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={drop}>
      <ColumnHead status={status} count={cards.length} limit={limit} />
      {cards.map((t) => <Card key={t.id} of={t} open={() => open(t.id)} />)}
      {cards.length === 0 && <p class="dim">{text.board.emptyColumn}</p>}
    </section>
  );
}

function Lanes({ cards, limits, byAgent, open }: { cards: readonly Task[]; limits: Record<string, unknown>; byAgent: boolean; open: (id: string) => void }) {
  const lanes = byAgent ? [...new Set(cards.map((t) => t.claimed_by ?? t.assigned_to ?? ""))].sort() : [undefined];
  return (
    <>
      {lanes.map((lane) => (
        <div key={lane ?? "all"} class="lane">
          {lane !== undefined && <h2>{lane || text.board.unassigned}</h2>}
          <div class="columns">
            {COLUMNS.map((status) => (
              <Column key={status} status={status} limit={limits[status] as number | undefined} open={open}
                cards={cards.filter((t) => t.status === status && (lane === undefined || (t.claimed_by ?? t.assigned_to ?? "") === lane))} />
            ))}
          </div>
        </div>
      ))}
    </>
  );
}

function NewTask({ project, onClose }: { project: string; onClose: () => void }) {
  const [form, set] = useState({ title: "", description: "", priority: "P2" as const });
  const save = (e: Event) => {
    e.preventDefault();
    void act(text.board.newTask, async () => {
      const made = await call("taskCreate", {}, { project, ...form });
      tasks.changed(made.id);
    }).then((ok) => ok && onClose());
  };
  return (
    <Dialog title={text.board.newTask} onClose={onClose}>
      <form onSubmit={save}>
        <Field label={text.board.title1}><input autoFocus value={form.title} onInput={(e) => set({ ...form, title: e.currentTarget.value })} /></Field>
        <Field label={text.board.description}><textarea rows={4} value={form.description} onInput={(e) => set({ ...form, description: e.currentTarget.value })} /></Field>
        <Field label={text.board.priority}>
          <select value={form.priority} onChange={(e) => set({ ...form, priority: e.currentTarget.value as "P2" })}>{["P0", "P1", "P2", "P3"].map((p) => <option key={p}>{p}</option>)}</select>
        </Field>
        <footer><button type="button" onClick={onClose}>{text.common.cancel}</button><button class="primary" disabled={!form.title}>{text.common.add}</button></footer>
      </form>
    </Dialog>
  );
}

function NewProject() {
  const [name, setName] = useState("");
  const make = (e: Event) => {
    e.preventDefault();
    void act(text.board.newProject, () => call("projectCreate", {}, { name })).then(() => projects.load());
  };
  return <form class="inline" onSubmit={make}><input value={name} placeholder={text.board.newProject} aria-label={text.board.newProject} onInput={(e) => setName(e.currentTarget.value)} /><button disabled={!name}>{text.common.add}</button></form>;
}

function Board({ of: p }: { of: Project }) {
  const [adding, add] = useState(false);
  const byAgent = place.value.query.get("lanes") === "1";
  const cards = [...(need(tasks)?.values() ?? [])].filter((t) => t.project === p.id);
  const shown = place.value.query.get("card") ?? "";
  const detail = cards.find((t) => t.id === shown);
  return (
    <>
      <p class="actions">
        {may("taskCreate") && <button class="primary" onClick={() => add(true)}>{text.board.newTask}</button>}
        <label><input type="checkbox" checked={byAgent} onChange={(e) => setQuery("lanes", e.currentTarget.checked ? "1" : "")} /> {text.board.lanes}</label>
      </p>
      <Lanes cards={cards} limits={p.limits} byAgent={byAgent} open={(id) => setQuery("card", id)} />
      {adding && <NewTask project={p.id} onClose={() => add(false)} />}
      {detail && <CardDetail of={detail} onClose={() => setQuery("card", "")} />}
    </>
  );
}

export function BoardPage() {
  const all = need(projects);
  need(tasks);
  need(agents);
  const list = all && [...all.values()];
  const current = list?.find((p) => p.id === place.value.path[1]) ?? list?.[0];
  return (
    <>
      <header class="page-head">
        <h1>{text.board.title}</h1>
        {list && list.length > 0 && (
          <select value={current?.id} aria-label={text.board.project} onChange={(e) => { location.hash = link("board", e.currentTarget.value); }}>
            {list.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
          </select>
        )}
        {may("projectCreate") && <NewProject />}
      </header>
      <Loaded items={list} error={projects.error.value} empty={text.board.noProject}>{() => current && <Board of={current} />}</Loaded>
    </>
  );
}
