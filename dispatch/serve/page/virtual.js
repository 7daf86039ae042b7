// A list of any length of which only the rows in sight are elements. They are used again while it scrolls.

import { make, oncePerFrame, setAttribute } from "./dom.js";

const TALLEST = 8_000_000; // browsers lose precision in taller elements; longer lists scroll by shares
const BEYOND = 2;
const PAGE = 50;
const PAGES = 40;
const UNFINISHED_MS = 250; // the last page of a list that grows is read again so often

export class VirtualList {
  /**
   * @param {object} of
   *   `fetch(from, count, signal)` returns `{total, rows}`; `draw(row element, data or null, place)` fills an element;
   *   `pick(data, place)` is called for the row that was chosen; `label` names the list
   */
  constructor({ fetch, draw, pick, label }) {
    Object.assign(this, { fetch, drawRow: draw, pick, total: 0, pages: new Map(), asked: new Set(), selected: -1, mark: 0 });
    this.spacer = make("div.spacer", { role: "presentation" });
    this.element = make("div.virtual", {
      role: "listbox", tabindex: "0", "aria-label": label, on: { scroll: () => this.draw(), keydown: (event) => this.key(event), click: (event) => this.click(event) },
    }, this.spacer);
    this.rows = [];
    this.draw = oncePerFrame(() => this.drawNow());
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
    this.prefix = `row${(VirtualList.made = (VirtualList.made ?? 0) + 1)}-`;
    this.ended = new AbortController();
  }

  close() {
    this.ended.abort();
    this.resized.disconnect();
  }

  /** Forget what was read and read again. */
  reset(total = 0) {
    this.ended.abort();
    this.ended = new AbortController();
    this.pages.clear();
    this.asked.clear();
    this.total = total;
    this.ask(0);
    this.draw();
  }

  /** There are more rows now; those that were read stay. */
  grow(total) {
    if (total === this.total) return;
    this.total = total;
    this.draw();
  }

  /** Mark the row at a place and bring it into sight. */
  select(place, { reveal = true } = {}) {
    this.selected = place;
    if (reveal && place >= 0 && this.height) {
      const top = this.scaled(place * this.height);
      const view = this.element.clientHeight;
      if (top < this.element.scrollTop) this.element.scrollTop = top - this.height;
      else if (top + 2 * this.height > this.element.scrollTop + view) this.element.scrollTop = top - view + 2 * this.height;
    }
    this.draw();
  }

  get height() {
    return (this.measured ??= Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row-px")) || 26);
  }

  get share() {
    return Math.min(1, TALLEST / Math.max(1, this.total * this.height));
  }

  scaled(pixels) {
    return pixels * this.share;
  }

  at(place) {
    const page = this.pages.get(Math.floor(place / PAGE));
    return page?.[place % PAGE] ?? null;
  }

  drawNow() {
    const view = this.element.clientHeight;
    if (!view) return;
    this.spacer.style.height = `${Math.max(1, this.scaled(this.total * this.height))}px`;
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.share / this.height) - BEYOND);
    const wanted = Math.min(this.total - first, Math.ceil(view / this.height) + 2 * BEYOND);
    while (this.rows.length < wanted) this.rows.push(this.spacer.appendChild(make("div", { role: "option" })));
    while (this.rows.length > Math.max(wanted, 0)) this.rows.pop().remove();
    const offset = this.share === 1 ? first * this.height : this.element.scrollTop - BEYOND * this.height;
    let active = null;
    this.rows.forEach((row, i) => {
      const place = first + i;
      row.style.transform = `translateY(${Math.max(0, offset) + i * this.height}px)`;
      if (row.place !== place) {
        row.place = place;
        row.id = `${this.prefix}${place}`;
        setAttribute(row, "aria-setsize", this.total);
        setAttribute(row, "aria-posinset", place + 1);
      }
      const chosen = place === this.selected;
      setAttribute(row, "aria-selected", chosen ? "true" : "false");
      if (chosen) active = row.id;
      this.drawRow(row, this.at(place), place);
    });
    setAttribute(this.element, "aria-activedescendant", active);
    for (let page = Math.floor(first / PAGE); page * PAGE < first + wanted; page++) this.ask(page);
  }

  async ask(page) {
    const here = this.pages.get(page)?.length ?? -1;
    if (here >= Math.min(PAGE, this.total - page * PAGE) || this.asked.has(page)) return;
    if (here >= 0) {
      const wait = (this.readAt ?? 0) + UNFINISHED_MS - performance.now();
      if (wait > 0) {
        this.later ??= setTimeout(() => { this.later = null; this.draw(); }, wait);
        return;
      }
      this.readAt = performance.now();
    }
    this.asked.add(page);
    const { signal } = this.ended;
    try {
      const found = await this.fetch(page * PAGE, PAGE, signal);
      if (signal.aborted) return;
      this.pages.set(page, found.rows);
      if (this.pages.size > PAGES) this.pages.delete(this.pages.keys().next().value);
      if (found.total > this.total || found.rows.length === 0) this.total = found.total;
    } catch {
      // the banner says that the server is gone; scrolling asks again
    } finally {
      if (!signal.aborted) {
        this.asked.delete(page);
        if (this.pages.has(page)) this.draw();
      }
    }
  }

  choose(place) {
    if (place < 0 || place >= this.total) return;
    this.select(place);
    this.pick(this.at(place), place);
  }

  click(event) {
    const row = event.target.closest('[role="option"]');
    if (row) this.choose(row.place);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const moves = {
      ArrowDown: this.selected + 1, ArrowUp: this.selected - 1, PageDown: this.selected + page, PageUp: this.selected - page,
      Home: 0, End: this.total - 1, Enter: this.selected,
    };
    if (!(event.key in moves) || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(Math.min(Math.max(0, moves[event.key]), this.total - 1));
  }
}
