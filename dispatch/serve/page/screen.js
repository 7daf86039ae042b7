// Text with colours in one element: a board, a prompt. Ranges are painted by the browser's highlights, so a picture of a
// thousand cells costs one text node; a browser without them shows the same text without colours.

import { make } from "./dom.js";
import { inLines } from "./shown.js";

const painted = globalThis.CSS?.highlights ? CSS.highlights : null;
const sheet = painted ? new CSSStyleSheet() : null;
if (sheet) document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
const COLOUR = /^#[0-9a-f]{6}$/i;
const MOST_COLOURS = 256;
// What a board is drawn on and with where it names no colour, as app.css has them.
const GROUND = "#0d0f11";
const INK = "#dfe3e8";
// The sixteen colours of a terminal as its standard has them are too dark to read; these are the same hues.
const LEGIBLE = new Map(Object.entries({
  "#000000": GROUND, "#800000": "#e5727c", "#008000": "#8fc379", "#808000": "#e2b866", "#000080": "#6aa8f0", "#800080": "#c98ae0",
  "#008080": "#58b8c4", "#c0c0c0": "#ccd1d8", "#808080": "#8a919c", "#ff0000": "#ff8b93", "#00ff00": "#aee08f", "#ffff00": "#f5d98a",
  "#0000ff": "#8cc0ff", "#ff00ff": "#e0a8f5", "#00ffff": "#7fd8e4", "#ffffff": "#ffffff",
}));

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
  const [fore, back] = [foreground, background].map((value) => (COLOUR.test(value ?? "") ? value.toLowerCase() : null))
    .map((value) => LEGIBLE.get(value) ?? value);
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
    for (const run of line) {
      const [fore, back] = run.reverse ? [run.bg ?? GROUND, run.fg ?? INK] : [run.fg, run.bg];
      runs.push({ text: run.text, look: colourLook(fore, back) ?? (run.dim ? "faint" : null) });
    }
  });
  return runs;
}
