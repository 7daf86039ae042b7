// The strip: the whole session on a canvas, a column a pixel. Height and colour tell the worst margin of the decisions that
// share a column, lanes below it what else happened. Dragging scrubs; for the keyboard it is a slider.

import { flagWords, FLAGS } from "./columns.js";
import { make, oncePerFrame, setAttribute } from "./dom.js";
import { count, decimal } from "./shown.js";

const LANES = ["refused", "forced", "illegalTop", "wish"];
const LANE_WORDS = { refused: "refused", forced: "forced", illegalTop: "illegal top", wish: "wish" };
const LANE = 6;
const BAND = 36;
const PAGE = 10;
const WIDEST = 22; // pixels of a decision, where there are few

/** Height of a margin's bar, 0 to 1: the less sure, the taller. A margin of 0.5 is half. */
export function doubt(margin) {
  return Number.isNaN(margin) ? 0 : 1 / (1 + 2 * Math.max(0, margin));
}

/**
 * What each column shows: the lowest margin of its decisions, and the flags of all of them.
 * @returns {{margins: Float32Array, flags: Uint16Array}} of length `width`
 */
export function columnsOf(columns, width) {
  const margins = new Float32Array(width).fill(NaN);
  const flags = new Uint16Array(width);
  const total = columns.count;
  for (let x = 0; x < width && total; x++) {
    const from = Math.floor((x * total) / width);
    const to = Math.max(from + 1, Math.floor(((x + 1) * total) / width));
    let least = Infinity;
    let known = false;
    for (let i = from; i < to; i++) {
      const margin = columns.margin[i];
      if (margin <= least) [least, known] = [margin, true];
      flags[x] |= columns.flags[i];
    }
    if (known) margins[x] = least;
  }
  return { margins, flags };
}

export class Strip {
  /** @param {function(number)} go is called with the decision that the reader points at. */
  constructor(go, label = "Decision") {
    this.go = go;
    this.columns = null;
    this.cursor = 0;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.tip = make("output.tip", { hidden: true, "aria-hidden": "true" });
    this.marker = make("i.marker", { hidden: true });
    this.element = make("div.strip", {
      role: "slider", tabindex: "0", "aria-label": label, "aria-valuemin": 1, "aria-valuemax": 1, "aria-valuenow": 1,
    }, this.canvas, this.marker, this.tip);
    this.draw = oncePerFrame(() => this.drawNow());
    const watch = { pointerdown: this.grab, pointermove: this.drag, pointerleave: this.leave, keydown: this.key };
    for (const [event, act] of Object.entries(watch)) this.element.addEventListener(event, act.bind(this));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => this.draw());
    }
  }

  close() {
    this.resized.disconnect();
  }

  /** Show these columns; `most` is how many decisions the width stands for, when another session is longer. */
  show(columns, most = columns.count, parting = null) {
    Object.assign(this, { columns, most: Math.max(most, columns.count), parting });
    setAttribute(this.element, "aria-valuemax", Math.max(columns.count, 1));
    this.draw();
    this.moveTo(this.cursor);
  }

  /** Put the marker on decision `n`. */
  moveTo(n) {
    this.cursor = n;
    if (!this.columns) return;
    this.marker.hidden = !n || n > this.columns.count;
    this.placeMarker();
    setAttribute(this.element, "aria-valuenow", Math.max(n, 1));
    setAttribute(this.element, "aria-valuetext", this.told(n));
  }

  /** Pixels that all decisions take: the whole width, or less where there are few. */
  get span() {
    return Math.max(1, Math.min(this.element.clientWidth, this.most * WIDEST));
  }

  placeMarker() {
    this.marker.style.setProperty("--at", `${((this.cursor - 0.5) / Math.max(this.most, 1)) * this.span}px`);
  }

  told(n) {
    if (!n || !this.columns?.count) return "no decision yet";
    const words = flagWords(this.columns.flags[n - 1]);
    const margin = this.columns.marginOf(n);
    return [`${count(n)} of ${count(this.columns.count)}`, Number.isNaN(margin) ? null : `margin ${decimal(margin)}`, ...words]
      .filter(Boolean).join(", ");
  }

  at(event) {
    const box = this.element.getBoundingClientRect();
    const n = 1 + Math.floor(((event.clientX - box.left) / this.span) * this.most);
    return Math.min(Math.max(n, 1), this.columns?.count ?? 0);
  }

  grab(event) {
    if (event.button !== 0 || !this.columns?.count) return;
    this.element.setPointerCapture(event.pointerId);
    this.go(this.at(event));
  }

  drag(event) {
    const n = this.at(event);
    if (!n) return;
    if (this.element.hasPointerCapture(event.pointerId)) this.go(n);
    this.tip.hidden = false;
    this.tip.textContent = this.told(n);
    const box = this.element.getBoundingClientRect();
    const x = Math.min(Math.max(event.clientX - box.left, 4), box.width - 4);
    this.tip.style.setProperty("--at", `${x}px`);
    this.tip.classList.toggle("left", x > box.width / 2);
  }

  leave() {
    this.tip.hidden = true;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = event.shiftKey ? PAGE : 1;
    const moves = {
      ArrowLeft: this.cursor - far, ArrowDown: this.cursor - far, ArrowRight: this.cursor + far, ArrowUp: this.cursor + far,
      PageDown: this.cursor - PAGE * PAGE, PageUp: this.cursor + PAGE * PAGE, Home: 1, End: this.columns?.count ?? 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(Math.max(1, moves[event.key]));
  }

  drawNow() {
    const width = this.element.clientWidth;
    const height = BAND + LANES.length * LANE + 2;
    if (!width || !this.columns) return;
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.element);
    const ink = (name) => style.getPropertyValue(`--ink-${name}`).trim();
    const ramp = ["calm", "middle", "worst"].map((name) => colour(style, `--ink-${name}`));
    const used = this.most ? Math.max(1, Math.round((this.span * this.columns.count) / this.most)) : 0;
    this.placeMarker();
    // Fewer decisions than pixels: each is a bar of its own, with a gap where there is room for one.
    const total = this.columns.count;
    const slots = Math.min(used, total);
    const { margins, flags } = columnsOf(this.columns, slots);
    const size = slots ? used / slots : 0;
    const gap = size > 4 ? 1 : 0;
    for (let i = 0; i < slots; i++) {
      const x = i * size;
      if (!Number.isNaN(margins[i])) {
        const share = doubt(margins[i]);
        const tall = Math.max(1.5, share * (BAND - 2));
        pen.fillStyle = ramped(ramp, share);
        pen.fillRect(x, BAND - tall, Math.max(size - gap, 1), tall);
      }
      LANES.forEach((lane, row) => {
        if (!(flags[i] & FLAGS[lane].bit)) return;
        pen.fillStyle = ink(lane);
        pen.fillRect(x, BAND + 2 + row * LANE, Math.max(size - gap, 2), LANE - 2);
      });
    }
    pen.fillStyle = ink("line");
    pen.fillRect(0, BAND, width, 1);
    if (this.parting) {
      pen.fillStyle = ink("worst");
      pen.fillRect(((this.parting - 1) / Math.max(this.most, 1)) * this.span, 0, 2, height);
    }
  }
}

/** The names of the lanes below the bars, as a legend. */
export function stripLegend() {
  return make("ul.legend.small", { "aria-label": "Strip" },
    make("li", {}, "taller bar: smaller margin"),
    ...LANES.map((lane) => make(`li.key-${lane}`, { title: FLAGS[lane].told }, LANE_WORDS[lane])));
}

function colour(style, name) {
  const parts = style.getPropertyValue(name).match(/[\d.]+/g)?.map(Number) ?? [128, 128, 128];
  return parts.slice(0, 3);
}

function ramped(ramp, share) {
  const place = Math.min(share, 0.9999) * (ramp.length - 1);
  const [from, to] = [ramp[Math.floor(place)], ramp[Math.floor(place) + 1]];
  const parts = from.map((value, i) => Math.round(value + (to[i] - value) * (place % 1)));
  return `rgb(${parts.join(" ")})`;
}
