// A session on the page: strip and controls above, decisions, stage and panel below.

import { Decisions } from "./decisions.js";
import { make, setAttribute, settled, setText } from "./dom.js";
import { LiveFeed } from "./live.js";
import { Panel, TABS } from "./panel.js";
import { Session } from "./session.js";
import { count, inLine } from "./shown.js";
import { Stage } from "./stage.js";
import { Strip, stripLegend } from "./strip.js";
import { Transport } from "./transport.js";
import { tab } from "./tabsource.js";
import { post } from "./api.js";

const FAR = 10;

export class SessionView {
  /** @param {object} hub what the whole page shares: `say`, `fail`, `link(route)`, `listed` */
  constructor(route, hub) {
    this.hub = hub;
    this.session = new Session(route.name);
    this.element = make("div.loading", {}, make("p.nothing.dim", { role: "status" }, `Opening ${inLine(route.name)}…`));
    this.write = settled(() => this.writeRoute(), 150);
    this.ready = this.open(route);
  }

  async open(route) {
    const { session, hub } = this;
    try {
      await session.open();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.showFault(error, route);
      return;
    }
    this.build();
    const { live } = session;
    if (route.n !== null) session.move(route.n);
    else if (live && live.state !== "ended") session.follow(true);
    else session.move(1);
    if (route.n !== null && route.token !== null) session.pin(route.n, route.token);
    this.feed = new LiveFeed(session, hub.fail);
    hub.told?.(session);
    if (session.count === 0 || route.n !== null) this.paintStage();
  }

  showFault(error, route) {
    this.element.className = "fault";
    this.element.replaceChildren(
      make("h1", {}, "This session cannot be shown"), make("p.foreign", {}, inLine(error.message, 600)),
      make("p", {}, make("button.primary", { type: "button", on: { click: () => this.hub.again(route) } }, "Try again"), " ", make("a", { href: "#/" }, "All sessions")));
  }

  build() {
    const { session, hub } = this;
    this.strip = new Strip((n) => session.move(n));
    this.transport = new Transport(session, hub.fail);
    this.decisions = new Decisions(session);
    this.stage = new Stage();
    this.panel = new Panel(session, hub);
    this.facts = make("p.facts");
    this.verdict = make("p.verdict.small", { role: "status" });
    this.notes = make("p.notes.small.dim.foreign", { hidden: true });
    this.request = this.requestForm();
    this.element.className = "session";
    this.element.replaceChildren(
      make("div.about", {}, make("h1.foreign", {}, inLine(session.name)), this.facts, this.verdict, tab && make("button.small", { type: "button", on: { click: () => this.saveLog() } }, "Save the log")),
      this.notes,
      make("div.stripbox", {}, this.strip.element, make("div.understrip", {}, this.transport.element, stripLegend())),
      make("div.columns", {}, this.decisions.element, make("section.stagebox", { "aria-label": "Stage", tabindex: "0" }, this.request, this.stage.element), this.panel.element));
    const on = (event, act) => session.addEventListener(event, act, { signal: session.signal });
    on("info", () => this.paintInfo());
    on("columns", () => this.paintColumns());
    on("cursor", () => { this.strip.moveTo(session.cursor); this.write(); });
    on("decision", () => this.paintStage());
    on("pin", () => this.write());
    this.paintInfo();
    this.paintColumns();
  }

  close() {
    this.session.close();
    for (const part of [this.feed, this.transport, this.decisions, this.panel, this.stage, this.strip]) part?.close();
  }

  paintInfo() {
    const { info } = this.session;
    const { header, live, verified, counts } = info;
    const facts = [
      header.cartridges.map(({ name }) => name).join(" + "), header.model?.name ?? `player ${header.player}`,
      header.rule?.name ?? null, `seed ${header.seed}`,
    ];
    setText(this.facts, facts.filter(Boolean).map((fact) => inLine(fact, 80)).join(" · "));
    const running = live !== null && live.state !== "ended";
    const states = { checking: "checking", verified: "verified", unfinished: "unfinished", damaged: "broken", different: "broken" };
    const word = states[verified.state] ?? verified.state;
    const broken = word === "broken";
    const where = broken ? ` at decision ${count(verified.decisions + 1)}` : word === "verified" ? "" : `, ${count(verified.decisions)} hold`;
    const now = running ? `live, ${live.state}` : `${word}${where}${verified.engines ? "" : ", engines not run"}`;
    setText(this.verdict, now);
    this.verdict.className = `verdict small ${running ? "live" : word}`;
    setAttribute(this.verdict, "title", inLine(verified.sentence, 400));
    const ended = live?.state === "ended" ? [`Ended: ${[live.ending, live.detail].filter(Boolean).join(", ")}.`] : [];
    const failed = live?.error ? [live.error] : [];
    const problem = !running && (broken || word === "unfinished") ? [verified.sentence] : [];
    const notes = [...failed, ...ended, ...problem, ...info.notes];
    this.notes.hidden = notes.length === 0;
    setText(this.notes, inLine(notes.join(" "), 600));
    this.request.hidden = !(live?.asks && running);
    this.element.dataset.lowCount = counts?.low ?? 0;
  }

  paintColumns() {
    this.strip.show(this.session.columns);
    this.strip.moveTo(this.session.cursor);
  }

  paintStage() {
    const { session } = this;
    this.stage.show(session.decision, session.info);
    if (session.fault) this.hub.fail(session.fault);
  }

  /** Offer the log of a session of this tab as a file; elsewhere it is one already. */
  async saveLog() {
    try {
      const [bytes, { saveFile }] = await Promise.all([tab.log(this.session.name), import("./tab/kept.js")]);
      saveFile(bytes, `${this.session.name.replace(/\W+/g, "-")}.jsonl`);
    } catch (error) {
      this.hub.fail(error);
    }
  }

  requestForm() {
    const field = make("input.field", { type: "text", "aria-label": "Request", placeholder: "Ask for something", autocomplete: "off", maxlength: 4096 });
    return make("form.request", { hidden: true, on: { submit: (event) => { event.preventDefault(); this.askFor(field); } } }, field, make("button.primary", { type: "submit" }, "Ask"));
  }

  async askFor(field) {
    if (!field.value.trim()) return;
    try {
      await post("/api/live/request", { session: this.session.name, request: field.value });
      field.value = "";
      this.session.follow(true);
      this.session.asked = this.session.count;
      this.decisions.grown();
    } catch (error) {
      this.hub.fail(error);
    }
  }

  writeRoute() {
    const { session } = this;
    const { pinned } = session;
    if (session.signal.aborted) return;
    const n = pinned?.n ?? (session.following ? null : session.cursor || null);
    this.hub.link({ view: "session", name: session.name, n, token: pinned?.token ?? null });
  }

  /** The address changed by hand. */
  goTo(route) {
    const { session } = this;
    if (!this.panel || route.n === null) return;
    session.move(route.n);
    if (route.token !== null) session.pin(route.n, route.token);
    else if (session.pinned) session.pin(null);
  }

  /** What keys do here, by name. */
  get acts() {
    const { session, transport, decisions, panel } = this;
    if (!panel) return {};
    return {
      playPause: () => transport.playPause(),
      back: () => transport.step(-1),
      on: () => transport.step(1),
      farBack: () => session.move(session.cursor - FAR),
      farOn: () => session.move(session.cursor + FAR),
      first: () => session.move(1),
      last: () => session.move(session.count),
      faster: () => transport.changeSpeed(1),
      slower: () => transport.changeSpeed(-1),
      follow: () => transport.toggleFollow(),
      stop: () => transport.stop(),
      jump: () => transport.focusJump(),
      least: () => decisions.nextLeast(),
      leastAnew: () => decisions.nextLeast(true),
      filter: () => decisions.focusFilter(),
      tokenBack: () => this.tokenStep(-1),
      tokenOn: () => this.tokenStep(1),
      pin: () => session.token !== null && panel.togglePin(session.token),
      letGo: () => (panel.again ? panel.closeAgain() : session.pin(null)),
      again: () => panel.toggleAgain(),
      ...Object.fromEntries(TABS.map(([name], i) => [`tab${i + 1}`, () => panel.open(name)])),
      beside: () => this.hub.chooseBeside(session.name),
    };
  }

  /** Look at the next choosing step; a pin goes along. */
  tokenStep(by) {
    const { session } = this;
    const tokens = session.shown?.tokens ?? [];
    let at = session.token ?? -1;
    do at += by; while (at >= 0 && at < tokens.length && tokens[at].step === null);
    if (at < 0 || at >= tokens.length) return undefined;
    if (session.pinned) return session.pin(session.pinned.n, at);
    session.look(at);
    return session.addEventListener("cursor", () => session.look(null), { once: true });
  }
}
