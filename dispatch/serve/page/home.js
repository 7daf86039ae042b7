// All sessions: the logs of the folder that is served and the live ones; starting a live one.

import { get, post } from "./api.js";
import { make, setAttribute, setText } from "./dom.js";
import { formatRoute } from "./route.js";
import { inLine } from "./shown.js";
import { VirtualList } from "./virtual.js";

const STARTING_MS = 500;

export class Home {
  constructor(route, hub) {
    this.hub = hub;
    this.sessions = [];
    this.list = new VirtualList({
      label: "Sessions", fetch: async (from, many) => ({ total: this.sessions.length, rows: this.sessions.slice(from, from + many) }),
      draw: drawSession, pick: (row) => row && !row.error && hub.open({ view: "session", name: row.name }),
    });
    this.list.element.classList.add("sessions");
    this.start = make("div.startbox");
    this.total = make("span.small.dim");
    this.empty = make("p.nothing.dim", { hidden: true });
    this.element = make("div.home", {}, make("div.listhead", {}, make("h1", {}, "Sessions"), this.total), this.list.element, this.empty, this.start);
    this.ready = this.load();
  }

  close() {
    this.list.close();
  }

  get acts() {
    return {};
  }

  async load() {
    try {
      const listed = await get("/api/sessions");
      this.hub.takeListed(listed);
      this.sessions = listed.sessions;
      setText(this.total, String(this.sessions.length));
      this.list.element.hidden = this.sessions.length === 0;
      this.empty.hidden = this.sessions.length > 0;
      setText(this.empty, "No session yet. A log is written by “run … --log FILE”; a live session begins below.");
      this.list.element.style.setProperty("--many", this.sessions.length);
      this.list.reset(this.sessions.length);
      if (listed.cartridges.length) this.offerStart(listed);
      if (listed.starting) this.waitForStart();
    } catch (error) {
      this.empty.hidden = false;
      setText(this.empty, inLine(error.message, 400));
    }
  }

  /** The model is being loaded; a session begins by itself when that is done. */
  async waitForStart() {
    setText(this.empty, "The model is being loaded; a session begins when it is there.");
    const there = new Set(this.sessions.map(({ name }) => name));
    let listed = null;
    do {
      await new Promise((done) => setTimeout(done, STARTING_MS));
      if (!this.element.isConnected) return;
      listed = await get("/api/sessions").catch(() => listed);
    } while (listed?.starting);
    const begun = listed?.sessions.find(({ name, kind }) => kind === "live" && !there.has(name));
    if (begun && !there.size) this.hub.open({ view: "session", name: begun.name });
    else if (this.element.isConnected) this.load();
  }

  offerStart({ cartridges, rules, model }) {
    const cartridge = chooser("Cartridge", cartridges);
    const player = chooser("Player", model ? ["model", "planner", "random"] : ["planner", "random"]);
    const rule = chooser("Rule", ["", ...rules], (name) => name || "as usual");
    const seed = make("input.field", { type: "number", min: 0, max: 2 ** 31, value: 7, id: "start-seed" });
    const paused = make("input", { type: "checkbox", id: "start-paused" });
    const fault = make("p.fault-line", { role: "alert" });
    const button = make("button.primary.icon.i-play", { type: "submit" }, "Start");
    const begin = async (event) => {
      event.preventDefault();
      setText(fault, "");
      button.disabled = true;
      try {
        const body = {
          cartridges: [cartridge.field.value], seed: Number(seed.value), player: player.field.value, rule: rule.field.value || null, paused: paused.checked,
        };
        const { name } = await post("/api/live/start", body);
        this.hub.open({ view: "session", name });
      } catch (error) {
        setText(fault, inLine(error.message, 400));
        setAttribute(fault, "data-type", error.type ?? "gone");
      } finally {
        button.disabled = false;
      }
    };
    this.start.replaceChildren(make("h2", {}, "Play a new one"), make("form.startform", { on: { submit: begin } },
      cartridge.element, player.element, rule.element, make("div", {}, make("label", { for: "start-seed" }, "Seed"), seed),
      make("div.check", {}, paused, make("label", { for: "start-paused" }, "begin paused")), button), fault);
  }
}

let made = 0;

/** A select with a label above it. */
export function chooser(word, names, told = (name) => name) {
  const id = `choose-${(made += 1)}`;
  const field = make("select", { id }, ...names.map((name) => make("option", { value: name }, inLine(told(name), 60))));
  return { field, element: make("div", {}, make("label", { for: id }, word), field) };
}

/** The link to a session. */
export function sessionLink(name) {
  return formatRoute({ view: "session", name });
}

function drawSession(element, row) {
  if (!element.firstChild) element.append(make("strong.foreign"), make("span.what.foreign"), make("span.when.small"));
  const [name, what, when] = element.children;
  setText(name, row ? inLine(row.name) : "…");
  element.classList.toggle("bad", Boolean(row?.error));
  element.classList.toggle("live", row?.kind === "live");
  const facts = row ? [row.cartridges.join(" + "), row.model ?? (row.player ? `player ${row.player}` : null), row.rule, row.seed === null ? null : `seed ${row.seed}`] : [];
  setText(what, row?.error ? inLine(row.error) : facts.filter(Boolean).map((fact) => inLine(fact, 80)).join(" · "));
  setText(when, row ? [row.kind === "live" ? "live" : size(row.bytes), (row.started ?? row.modified ?? "").slice(0, 16).replace("T", " ")].filter(Boolean).join(" · ") : "");
}

function size(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
