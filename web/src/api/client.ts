// The typed client of the holt API: one function for every operation of api/openapi.json.
import { operations } from "./operations";
import type { Operations } from "./types";

export type OperationName = keyof Operations;
type Args<K extends OperationName> = Operations[K]["args"];

/** An error as holt says it: what failed, on which object, and what helps. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | undefined,
    readonly object: string | undefined,
  ) {
    super(message);
  }
}

/** The path of an operation with its arguments filled in: those named in the path there, the others in the query. */
export function pathOf<K extends OperationName>(name: K, args: Args<K>): string {
  const query = new URLSearchParams();
  let path: string = operations[name][1];
  for (const [key, value] of Object.entries(args)) {
    if (value === undefined || value === null) continue;
    const slot = `{${key}}`;
    if (path.includes(slot)) path = path.replace(slot, encodeURIComponent(String(value)));
    else query.set(key, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function readError(reply: Response): Promise<ApiError> {
  const body = (await reply.json().catch(() => ({}))) as { error?: { code?: string; message?: string; hint?: string; object?: string } };
  const e = body.error ?? {};
  return new ApiError(reply.status, e.code ?? "unknown", e.message ?? `status ${reply.status}`, e.hint, e.object);
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(path, { credentials: "same-origin", ...init });
  } catch {
    throw new ApiError(0, "unreachable", "holtd does not answer", "Is it running? The page tries again by itself.", undefined);
  }
  if (!reply.ok) throw await readError(reply);
  return reply;
}

/** Calls an operation; rejects with an ApiError. */
export async function call<K extends OperationName>(name: K, args: Args<K>, body?: Operations[K]["body"]): Promise<Operations[K]["reply"]> {
  const init: RequestInit = { method: operations[name][0] };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  const reply = await send(pathOf(name, args), init);
  const text = await reply.text();
  return (text && reply.headers.get("content-type")?.includes("json") ? JSON.parse(text) : undefined) as Operations[K]["reply"];
}

/** The bytes of an operation whose reply is not JSON, or that takes bytes. */
export function callRaw<K extends OperationName>(name: K, args: Args<K>, body?: BodyInit): Promise<Response> {
  const init: RequestInit = { method: operations[name][0] };
  if (body !== undefined) {
    init.body = body;
    init.headers = { "content-type": "application/octet-stream" };
  }
  return send(pathOf(name, args), init);
}

export function socketUrl<K extends OperationName>(name: K, args: Args<K>): string {
  const url = new URL(pathOf(name, args), location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** Every item of a list, page by page. */
export async function listAll<T>(page: (cursor: string | undefined) => Promise<{ items: T[]; cursor: string | null }>): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const got = await page(cursor);
    all.push(...got.items);
    cursor = got.cursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}
