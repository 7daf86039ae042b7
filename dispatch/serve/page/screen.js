// Text with colours in one element: a board, a prompt. Ranges are painted by the browser's highlights, so a picture of a
// thousand cells costs one text node; a browser without them shows the same text without colours.

import { make } from "./dom.js";
import { inLines } from "./shown.js";

const painted = globalThis.CSS?.highlights ? CSS.highlights : null;
const sheet = painted ? new CSSStyleSheet() : null;
if (sheet) document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
const COLOUR = /^#[0-9a-f]{6}$/i;
const MOST_COLOURS = 256;

/** An element that shows runs of text, each with a look: a name that CSS knows, or colours. */
export class Screen {
  constructor(tag = "pre.screen", props = {}) {
    this.element = make(tag, props);
    this.text = this.element.appendChild(document.createTextNode(""));
    this.mine = new Map();
  }

  /** Take the colours away; the element is not used any more. */
  close() {
    this.paint(new Map());
  }

  /** @param {Array<{text: string, look: string|null}>} runs a look is a name of `app.css` or made by `colourLook` */
  show(runs) {
    let text = "";
    const ranges = new Map();
    for (const run of runs) {
      const from = text.length;
      text += inLines(run.text);
      if (!run.look || text.length === from) continue;
      if (!ranges.has(run.look)) ranges.set(run.look, []);
      ranges.get(run.look).push([from, text.length]);
    }
    if (this.text.data !== text) this.text.data = text;
    this.paint(ranges);
  }

  /** Show plain text. */
  say(text) {
    this.show([{ text, look: null }]);
  }

  paint(wanted) {
    if (!painted) return;
    for (const [name, mine] of this.mine) {
      const highlight = painted.get(name);
      for (const range of mine) highlight?.delete(range);
      if (highlight?.size === 0) painted.delete(name);
    }
    this.mine = new Map();
    for (const [name, places] of wanted) {
      if (!painted.has(name)) painted.set(name, new Highlight());
      const ranges = places.map(([from, to]) => {
        const range = new StaticRange({ startContainer: this.text, startOffset: from, endContainer: this.text, endOffset: to });
        painted.get(name).add(range);
        return range;
      });
      this.mine.set(name, ranges);
    }
  }
}

const looks = new Set();

/** Return the look of two colours (`#rrggbb` or null); rules are made as they are needed, and no others get in. */
export function colourLook(foreground, background) {
  const [fore, back] = [foreground, background].map((value) => (COLOUR.test(value ?? "") ? value.toLowerCase() : null));
  if (!sheet || (!fore && !back) || matchMedia("(forced-colors: active)").matches) return null;
  const name = `c${fore?.slice(1) ?? "none"}-${back?.slice(1) ?? "none"}`;
  if (!looks.has(name)) {
    if (looks.size >= MOST_COLOURS) return null;
    looks.add(name);
    sheet.insertRule(`::highlight(${name}) {${fore ? ` color: ${fore};` : ""}${back ? ` background-color: ${back};` : ""} }`);
  }
  return name;
}

/** Return the runs of a board as the interface tells it. */
export function boardRuns(board) {
  const runs = [];
  board.lines.forEach((line, i) => {
    if (i) runs.push({ text: "\n", look: null });
    for (const run of line) runs.push({ text: run.text, look: colourLook(run.fg, run.bg) ?? (run.dim ? "faint" : null) });
  });
  return runs;
}
