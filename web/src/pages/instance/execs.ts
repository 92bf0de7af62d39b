// The commands of one sandbox, kept fresh by the events about them.
import { useEffect, useState } from "preact/hooks";
import { call, type ApiError } from "../../api/client";
import type { Exec } from "../../api/types";
import { execChanged } from "../../live/store";

const NEWEST = 200;

export function useExecs(sandbox: string): { execs: readonly Exec[] | undefined; error: ApiError | undefined } {
  const [execs, setExecs] = useState<readonly Exec[]>();
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    let live = true;
    const load = () => call("execList", { id: sandbox, limit: 1000 }).then(
      (r) => live && setExecs([...r.execs].sort((a, b) => (a.created_at < b.created_at ? 1 : -1)).slice(0, NEWEST)), (e: ApiError) => live && setError(e));
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = execChanged.subscribe((exec) => {
      if (exec?.sandbox !== sandbox) return;
      clearTimeout(timer);
      timer = setTimeout(() => void load(), 60);
    });
    void load();
    return () => {
      live = false;
      clearTimeout(timer);
      stop();
    };
  }, [sandbox]);
  return { execs, error };
}
