// Routes of the page, after '#': paths of the server belong to the interfaces that holt speaks.
import { computed, signal } from "@preact/signals";

const hash = signal(location.hash);

addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export interface Place {
  /** "instances/sb_1/files" is ["instances", "sb_1", "files"]. */
  path: string[];
  query: URLSearchParams;
}

function parse(text: string): Place {
  const [path = "", query = ""] = text.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query) };
}

export const place = computed(() => parse(hash.value));

export function link(...path: string[]): string {
  return `#/${path.map(encodeURIComponent).join("/")}`;
}

export function go(...path: string[]): void {
  location.hash = link(...path);
}

/** Changes the query of the current place without a new entry in the history. */
export function setQuery(name: string, value: string): void {
  const { path, query } = place.value;
  const next = new URLSearchParams(query);
  if (value) next.set(name, value);
  else next.delete(name);
  const text = next.toString();
  history.replaceState(null, "", link(...path) + (text ? `?${text}` : ""));
  hash.value = location.hash;
}
