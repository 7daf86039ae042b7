// The prompt as the model read it: its orders and heads, the lines of options, the null prompts; what was kept from the
// decision before, and what was evaluated.

import { get, sessionPath } from "./api.js";
import { fill, make, setText } from "./dom.js";
import { Screen } from "./screen.js";
import { count, inLine } from "./shown.js";

const MOST_FOLDS = 12;

export class PromptView {
  constructor(session) {
    this.session = session;
    this.sums = make("p.sums.small");
    this.screen = new Screen("pre.screen.prompt", { tabindex: "0", role: "region", "aria-label": "Prompt" });
    this.legend = make("p.small.promptkey", {}, make("span.kept", {}, "kept from the decision before"), " · ",
      make("span.fresh", {}, "evaluated"), " · ", make("span.ctl", {}, "control token"));
    this.folds = make("div.folds");
    this.element = make("div.promptbox", {}, this.sums, this.screen.element, this.legend, this.folds);
    this.screens = [];
    this.n = null;
  }

  close() {
    this.stop?.abort();
    this.drop();
    this.screen.close();
  }

  drop() {
    for (const screen of this.screens.splice(0)) screen.close();
  }

  async show(decision) {
    if (!decision || decision.n === this.n) return;
    this.n = decision.n;
    this.stop?.abort();
    this.stop = new AbortController();
    try {
      const read = await get(sessionPath(this.session.name, `/d/${decision.n}/prompt`), this.stop.signal);
      this.paint(read, decision);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.n = null;
      setText(this.sums, inLine(error.message, 400));
    }
  }

  paint(read, decision) {
    this.drop();
    const [first, ...others] = read.orders;
    const { counts } = decision;
    const sums = first
      ? [`${count(first.tokens)} tokens`, `${count(first.kept)} kept`, `${count(first.tokens - first.kept)} new`,
        `${count(counts.evaluated)} evaluated in ${count(counts.passes)} ${counts.passes === 1 ? "pass" : "passes"}`,
        read.from === "view" ? "written again by the view" : null].filter(Boolean).join(" · ")
      : inLine(read.why ?? "This decision has no prompt.", 400);
    setText(this.sums, sums);
    this.screen.element.hidden = this.legend.hidden = !first;
    if (first) this.screen.show(runsOf(first));
    const folds = [
      ...read.sets.map((line, i) => ({ title: `set line ${i + 1}${line.marks?.length ? `: ${line.marks.map((mark) => inLine(mark)).join(", ")}` : ""}`, runs: [{ text: line.text, look: null }] })),
      ...others.map((order, i) => ({ title: `order ${i + 2}`, order, runs: runsOf(order) })),
      ...read.nulls.map((order, i) => ({ title: `null prompt ${i + 1}`, order, runs: runsOf(order) })),
    ];
    const beyond = folds.length - MOST_FOLDS;
    fill(this.folds, ...folds.slice(0, MOST_FOLDS).map((of) => this.fold(of)), beyond > 0 ? make("p.small.dim", {}, `and ${count(beyond)} more`) : null);
  }

  /** A part that unfolds; its text is made when it is opened. */
  fold({ title, order, runs }) {
    const told = order ? ` · ${count(order.tokens)} tokens, ${count(order.kept)} shared` : "";
    const details = make("details", {}, make("summary.small", {}, `${title}${told}`));
    details.addEventListener("toggle", () => {
      if (!details.open || details.children.length > 1) return;
      const screen = new Screen("pre.screen.prompt", { tabindex: "0", role: "region", "aria-label": title });
      this.screens.push(screen);
      screen.show(runs);
      details.append(screen.element);
    });
    return details;
  }
}

function runsOf(read) {
  return read.parts.map(({ text, kept, control }) => ({ text, look: control ? "control" : kept ? "kept" : "fresh" }));
}
