// Desktop notifications about new questions, while the page is open and not in front.
import { signal } from "@preact/signals";
import { text } from "../text";

const supported = "Notification" in globalThis;
export const desktop = signal<NotificationPermission>(supported ? Notification.permission : "denied");

/** Asks the browser for the permission; only from a click. */
export async function askForDesktop(): Promise<void> {
  desktop.value = await Notification.requestPermission();
}

/** Says how many questions wait; the newer notification replaces the older one. */
export function notifyDesktop(count: number): void {
  if (desktop.value !== "granted" || !document.hidden) return;
  const shown = new Notification(text.product, { body: text.now.pending(count), tag: "holt-approvals" });
  shown.onclick = () => {
    window.focus();
    location.hash = "#/approvals";
    shown.close();
  };
}
