// Dark or light: the system's choice unless the person made one.
import { signal } from "@preact/signals";

export type Theme = "system" | "dark" | "light";
const KEY = "holt.theme";

export const theme = signal<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "system");

export function applyTheme(): void {
  document.documentElement.style.colorScheme = theme.value === "system" ? "light dark" : theme.value;
}

export function chooseTheme(next: Theme): void {
  theme.value = next;
  localStorage.setItem(KEY, next);
  applyTheme();
}
