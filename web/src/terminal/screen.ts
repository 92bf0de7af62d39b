// One xterm.js terminal: loaded when the first pane opens.
import { FitAddon } from "@xterm/addon-fit";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { Terminal, type ITheme } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { withoutStyleElements } from "./style-sheets";

const SCROLLBACK = 5000;

function themeOf(element: HTMLElement): ITheme {
  const style = getComputedStyle(element);
  return { background: style.backgroundColor, foreground: style.color, cursor: style.color, selectionBackground: "#5b8def88" };
}

export class Screen {
  readonly term: Terminal;
  private readonly fit = new FitAddon();
  private readonly observer: ResizeObserver;
  private readonly removeSheets: () => void;

  /** fits: the size follows the element; otherwise it is the caller's. */
  constructor(element: HTMLElement, reader: boolean, onSize: (rows: number, cols: number) => void, fits = true) {
    this.term = new Terminal({
      allowProposedApi: true, scrollback: SCROLLBACK, fontSize: 13, fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace", theme: themeOf(element), screenReaderMode: reader,
      cursorBlink: false, linkHandler: null,
    });
    this.term.loadAddon(this.fit);
    this.term.loadAddon(new Unicode11Addon());
    this.term.unicode.activeVersion = "11";
    this.removeSheets = withoutStyleElements(element, () => this.term.open(element));
    // Shift+Tab leaves the terminal: without a way out a keyboard user would be caught in it.
    this.term.attachCustomKeyEventHandler((e) => !(e.key === "Tab" && e.shiftKey));
    this.term.onResize(({ rows, cols }) => onSize(rows, cols));
    this.observer = new ResizeObserver(() => this.fit.fit());
    if (!fits) return;
    this.observer.observe(element);
    this.fit.fit();
  }

  write(bytes: Uint8Array): void {
    this.term.write(bytes);
  }

  dispose(): void {
    this.observer.disconnect();
    this.term.dispose();
    this.removeSheets();
  }
}
