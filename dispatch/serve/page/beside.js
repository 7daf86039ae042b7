// Two sessions side by side at the same decision, with the first one that differs marked.

import { get, query } from "./api.js";
import { make, settled, setText } from "./dom.js";
import { chooser } from "./home.js";
import { LiveFeed } from "./live.js";
import { Session } from "./session.js";
import { count, inLine } from "./shown.js";
import { Stage } from "./stage.js";
import { Strip } from "./strip.js";

const FAR = 10;

export class Beside {
  constructor(route, hub) {
    Object.assign(this, { hub, route, parting: null });
    this.sides = [route.name, route.other].map((name) => {
      const session = new Session(name);
      return { name, session, strip: new Strip((n) => this.move(n), `Decision of ${inLine(name, 60)}`), stage: new Stage() };
    });
    this.element = make("div.loading", {}, make("p.nothing.dim", { role: "status" }, "Opening two sessions…"));
    this.write = settled(() => this.sides[0].session.signal.aborted || hub.link({ view: "beside", name: route.name, other: route.other, n: this.n }), 150);
    this.n = route.n ?? 1;
    this.ready = this.open();
  }

  close() {
    for (const side of this.sides) {
      side.feed?.close();
      side.session.close();
      side.strip.close();
      side.stage.close();
    }
  }

  async open() {
    try {
      await Promise.all(this.sides.map(({ session }) => session.open()));
      this.diff = await get(`/api/diff${query({ a: this.route.name, b: this.route.other })}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.className = "fault";
      this.element.replaceChildren(make("h1", {}, "These sessions cannot be compared"), make("p.foreign", {}, inLine(error.message, 600)), make("p", {}, make("a", { href: "#/" }, "All sessions")));
      return;
    }
    this.parting = this.diff.parting ? Math.max(this.diff.parting.n, 1) : null;
    this.build();
    this.move(this.route.n ?? this.parting ?? 1);
  }

  get longest() {
    return Math.max(...this.sides.map(({ session }) => session.count), 1);
  }

  build() {
    const { diff, hub, route } = this;
    const names = (hub.listed?.sessions ?? []).filter(({ error, name }) => !error && name !== route.name).map(({ name }) => name);
    this.other = chooser("Beside", names.includes(route.other) ? names : [route.other, ...names]);
    this.other.field.value = route.other;
    this.other.field.addEventListener("change", () => hub.open({ view: "beside", name: route.name, other: this.other.field.value }));
    this.place = make("span.of");
    const button = (icon, label, act, key) => make(`button.icon.${icon}`, { type: "button", "aria-label": label, title: `${label} (${key})`, on: { click: act } });
    this.jump = make("button", { type: "button", title: "First difference (n)", disabled: !this.parting, on: { click: () => this.move(this.parting) } }, "First difference");
    const headers = Object.entries(diff.headers).slice(0, 8).map(([field, [a, b]]) => `${inLine(field, 40)}: ${plain(a)} | ${plain(b)}`);
    const parted = diff.parting
      ? `They part ${diff.parting.n ? `at decision ${count(diff.parting.n)}` : "at the start"} (${diff.parting.why}): ${diff.parting.detail}`
      : `The same to the end: ${count(diff.same)} decisions.`;
    this.element.className = "beside";
    this.element.replaceChildren(
      make("div.about", {}, make("h1.foreign", {}, inLine(route.name)), this.other.element),
      make("p.parting.foreign", {}, make("strong", {}, inLine(parted, 600))),
      make("p.small.dim.foreign", {}, [headers.join(" · "), ...diff.damages.map((text) => inLine(text, 200))].filter(Boolean).join(" · ") || "The same set-up."),
      make("div.transport", { role: "group", "aria-label": "Controls" }, make("span.group", {}, button("i-first", "First decision", () => this.move(1), "Home"), button("i-back", "One back", () => this.move(this.n - 1), "←"),
        button("i-step", "One on", () => this.move(this.n + 1), "→"), button("i-last", "Last decision", () => this.move(this.longest), "End")), this.place, this.jump),
      make("div.pair", {}, ...this.sides.map((side) => this.buildSide(side))));
    for (const { session } of this.sides) {
      const on = (event, act) => session.addEventListener(event, act, { signal: session.signal });
      on("columns", () => this.paintStrips());
      on("decision", () => this.paintStages());
    }
    for (const side of this.sides) side.feed = new LiveFeed(side.session, hub.fail);
    this.paintStrips();
  }

  buildSide(side) {
    const { header } = side.session.info;
    const facts = [header.model?.name ?? `player ${header.player}`, header.rule?.name, `seed ${header.seed}`].filter(Boolean);
    side.note = make("p.nothing.dim", { hidden: true });
    return make("section.side", { "aria-label": inLine(side.name, 80) }, make("h2.foreign", {}, make("a", { href: `#/s/${encodeURIComponent(side.name)}` }, inLine(side.name))),
      make("p.small.dim.foreign", {}, facts.map((fact) => inLine(fact, 60)).join(" · ")), side.strip.element, side.note, side.stage.element);
  }

  paintStrips() {
    for (const { session, strip } of this.sides) {
      strip.show(session.columns, this.longest, this.parting);
      strip.moveTo(this.n <= session.count ? this.n : 0);
    }
    setText(this.place, `${count(this.n)} of ${count(this.longest)}`);
  }

  paintStages() {
    for (const { session, stage, note } of this.sides) {
      const beyond = this.n > session.count;
      note.hidden = !beyond;
      stage.element.hidden = beyond;
      setText(note, beyond ? `This session has ${count(session.count)} decisions.` : "");
      if (!beyond) stage.show(session.decision, session.info);
    }
    this.element.classList.toggle("parted", this.parting !== null && this.n >= this.parting);
  }

  move(n) {
    this.n = Math.min(Math.max(1, n), this.longest);
    for (const { session } of this.sides) if (this.n <= session.count) session.move(this.n);
    this.paintStrips();
    this.paintStages();
    this.write();
  }

  goTo(route) {
    if (route.n !== null && this.place) this.move(route.n);
  }

  get acts() {
    if (!this.place) return {};
    return {
      back: () => this.move(this.n - 1), on: () => this.move(this.n + 1), farBack: () => this.move(this.n - FAR), farOn: () => this.move(this.n + FAR),
      first: () => this.move(1), last: () => this.move(this.longest), least: () => this.parting && this.move(this.parting),
      letGo: () => this.hub.open({ view: "session", name: this.route.name, n: this.n }),
    };
  }
}

function plain(value) {
  return inLine(typeof value === "string" ? value : JSON.stringify(value), 60);
}
