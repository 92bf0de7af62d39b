// xterm writes its rules into <style> elements, which our content security policy forbids.  While a terminal is opened it gets
// inert elements in their place, whose text becomes a constructed style sheet.
const sheets = new WeakMap<Node, CSSStyleSheet>();

function mirror(element: HTMLElement): void {
  const sheet = new CSSStyleSheet();
  sheets.set(element, sheet);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  new MutationObserver(() => sheet.replaceSync(element.textContent ?? "")).observe(element, { childList: true, characterData: true, subtree: true });
}

function makeInert(): HTMLElement {
  const element = document.createElement("holt-style");
  element.hidden = true;
  mirror(element);
  return element;
}

/** Runs open() with style elements replaced; returns what takes their sheets away again. */
export function withoutStyleElements(root: HTMLElement, open: () => void): () => void {
  const original = Document.prototype.createElement;
  const replaced = function (this: Document, name: string, options?: ElementCreationOptions): HTMLElement {
    return name === "style" ? makeInert() : original.call(this, name, options);
  };
  Document.prototype.createElement = replaced as typeof original;
  try {
    open();
  } finally {
    Document.prototype.createElement = original;
  }
  const inert = [...root.querySelectorAll("holt-style")];
  return () => {
    const mine = new Set(inert.map((e) => sheets.get(e)));
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => !mine.has(s));
  };
}
