// The list of decisions, of which only those in sight are elements, with filters that the server applies.

import { FLAGS, flagWords, LOW } from "./columns.js";
import { number } from "./api.js";
import { make, setAttribute, setText, setVars } from "./dom.js";
import { count, decimal, inLine } from "./shown.js";
import { doubt } from "./strip.js";
import { VirtualList } from "./virtual.js";

const SLOW_WORD = "slow";

export class Decisions {
  constructor(session) {
    this.session = session;
    this.filter = make("select", { "aria-label": "Filter the decisions", title: "Filter (/)", on: { change: () => this.apply() } });
    this.total = make("span.small.dim", { role: "status" });
    this.least = make("button.small", { type: "button", title: "Next least confident (n)", on: { click: () => this.nextLeast() } }, "Least sure");
    this.list = new VirtualList({
      label: "Decisions", fetch: (from, many, signal) => this.fetch(from, many, signal), draw: drawRow, pick: (row, place) => this.pick(row, place),
    });
    this.empty = make("p.nothing.dim", { hidden: true });
    this.element = make("section.decisions", { "aria-label": "Decisions" },
      make("div.listhead", {}, make("h2", {}, "Decisions"), this.total, this.least, this.filter), this.list.element, this.empty);
    this.stop = new AbortController();
    const { signal } = this.stop;
    session.addEventListener("info", () => this.offer(), { signal });
    session.addEventListener("columns", () => this.grown(), { signal });
    session.addEventListener("cursor", () => this.follow(), { signal });
    this.chosen = {};
    this.leastAt = null;
    this.shownFilters = "";
    this.offer();
    this.list.reset(session.count);
    this.grown();
  }

  close() {
    this.stop.abort();
    this.list.close();
  }

  get filtered() {
    return Object.keys(this.chosen).length > 0;
  }

  /** Offer the filters that make sense for this session. */
  offer() {
    const { info } = this.session;
    if (!info) return;
    const { cartridges, outcomes } = info.names;
    const groups = [["", "all"], [`flags=${LOW}`, "low margin"]];
    if (info.slow_ms !== null && info.slow_ms !== undefined) groups.push([`ms_above=${info.slow_ms}`, SLOW_WORD]);
    for (const { bit, word } of Object.values(FLAGS)) groups.push([`flags=${bit}`, word]);
    for (const name of outcomes) groups.push([`outcome=${encodeURIComponent(name)}`, `outcome: ${inLine(name, 40)}`]);
    if (cartridges.length > 1) for (const name of cartridges) groups.push([`cartridge=${encodeURIComponent(name)}`, `cartridge: ${inLine(name, 40)}`]);
    const wanted = JSON.stringify(groups);
    if (wanted === this.shownFilters) return;
    this.shownFilters = wanted;
    const { value } = this.filter;
    this.filter.replaceChildren(...groups.slice(0, 24).map(([key, word]) => make("option", { value: key }, word)));
    this.filter.value = groups.some(([key]) => key === value) ? value : "";
  }

  apply() {
    this.chosen = Object.fromEntries(new URLSearchParams(this.filter.value));
    this.list.select(-1, { reveal: false });
    this.list.element.scrollTop = 0;
    this.list.reset(this.filtered ? 0 : this.session.count);
    this.grown();
    if (!this.filtered) this.follow();
  }

  async fetch(from, many, signal) {
    const found = await this.session.rows(from, many, this.chosen, signal);
    this.told = found.total;
    this.grown();
    return found;
  }

  grown() {
    const { session } = this;
    if (!this.filtered) this.list.grow(session.count);
    const matches = this.filtered ? this.told : session.count;
    this.list.element.style.setProperty("--digits", count(session.count).length);
    const deciding = session.asked === session.count ? ", deciding…" : "";
    setText(this.total, this.filtered ? `${count(matches ?? null)} of ${count(session.count)}` : `${count(session.count)}${deciding}`);
    this.empty.hidden = session.count > 0 && !(this.filtered && matches === 0);
    this.list.element.hidden = !this.empty.hidden;
    setText(this.empty, session.count === 0 ? this.waitingFor() : "No decision is like that.");
  }

  waitingFor() {
    if (this.session.live?.asks) return this.session.asked === this.session.count ? "Deciding…" : "Waiting for a request.";
    return this.session.info?.complete === false ? "Reading the log…" : "No decision yet.";
  }

  follow() {
    const { session } = this;
    if (this.filtered) this.list.select(this.list.selected, { reveal: false });
    else this.list.select(session.cursor - 1);
  }

  pick(row, place) {
    if (row) this.session.move(row.n);
    else if (!this.filtered) this.session.move(place + 1);
  }

  /** Go to the least sure decision, then to the next of that order each time. */
  async nextLeast(anew = false) {
    const { session } = this;
    if (this.seeking) {
      this.sought = true;
      return;
    }
    this.seeking = true;
    const after = !anew && this.leastAt === session.cursor ? this.leastAt : null;
    try {
      const found = await session.least(after);
      this.leastAt = found.n;
    } catch {
      // the banner says why
    } finally {
      this.seeking = false;
    }
    if (this.sought) {
      this.sought = false;
      this.nextLeast();
    }
  }

  focusFilter() {
    this.filter.focus();
  }
}

/** Fill a row. It is one element: number and margin are drawn by CSS from attributes, and told by its label. */
function drawRow(element, row) {
  const margin = row ? margined(row) : NaN;
  const words = row ? flagWords(row.flags) : [];
  const asked = row && row.request !== null ? ` ← ${row.request}` : "";
  setText(element, row ? [inLine(`${brief(row)}${asked}`), ...words].join(" · ") : "…");
  const known = row !== null && !Number.isNaN(margin);
  setAttribute(element, "data-n", row ? count(row.n) : "");
  setAttribute(element, "data-margin", known ? decimal(margin) : "");
  setAttribute(element, "aria-label", row ? [row.n, inLine(row.said), ...words, known ? `margin ${decimal(margin)}` : null].filter(Boolean).join(", ") : null);
  setVars(element, { fill: doubt(margin).toFixed(2) });
  element.classList.toggle("waiting", !row);
  element.classList.toggle("bad", Boolean(row && row.flags & (FLAGS.refused.bit | FLAGS.failed.bit)));
}

/** What was said without the cartridge and the names of arguments: `place(7, 0)`. Quoted text stays as it is. */
export function brief({ said, cartridge }) {
  const own = said.startsWith(`${cartridge}.`) ? said.slice(cartridge.length + 1) : said;
  return own.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|([(,] ?)[A-Za-z_]\w*=/g, (found, before) => before ?? found);
}

function margined(row) {
  return row.margin === null ? NaN : number(row.margin);
}
