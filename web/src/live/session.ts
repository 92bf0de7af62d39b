// Who is logged in, and what that principal may do.
import { signal } from "@preact/signals";
import { ApiError, call, type OperationName } from "../api/client";
import { operations } from "../api/operations";
import type { Self } from "../api/types";

export const self = signal<Self | null | undefined>(undefined); // undefined: not known yet; null: not logged in
export const loginError = signal("");

/** Turns the code of a login link into a cookie.  The code leaves the address bar before anything else happens. */
async function useLoginLink(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  await call("login", {}, { code });
}

export async function logIn(code?: string): Promise<void> {
  try {
    if (code) await call("login", {}, { code });
    else await useLoginLink();
    loginError.value = "";
  } catch (e) {
    loginError.value = (e as Error).message;
  }
  try {
    self.value = await call("tokenSelf", {});
  } catch (e) {
    self.value = e instanceof ApiError && e.status === 0 ? undefined : null;
    if (self.value === undefined) setTimeout(() => void logIn(), 1000);
  }
}

export async function logOut(): Promise<void> {
  await call("logout", {});
  self.value = null;
}

/** Whether the server will let this principal call the operation: it decides again itself. */
export function may(name: OperationName): boolean {
  const permission = operations[name][2];
  return !permission || permission === "none" || (self.value?.permissions ?? []).includes(permission);
}
