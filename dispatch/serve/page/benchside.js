// One side of the bench: the text as it is written, its tokens, the ledger of the one that is looked at, how it ended.

import { make, setAttribute, setText } from "./dom.js";
import { Ledger } from "./ledger.js";
import { Pieces } from "./pieces.js";
import { optionNumbers, stepNumbers } from "./session.js";
import { count, decimal, duration, inLine, inLines, percent } from "./shown.js";
import { number } from "./api.js";

const MOST_OPTIONS = 6;

export class BenchSide {
  constructor(mode, word, told) {
    this.mode = mode;
    this.text = make("pre.written.foreign", { tabindex: "0", role: "region", "aria-label": `${word}: text` });
    this.verdict = make("p.small.verdict", { role: "status" });
    this.pieces = new Pieces({ look: (at) => this.look(at), pin: (at) => this.pin(at) });
    this.ledger = new Ledger(`${word}: ledger`);
    this.options = make("ol.shares.small", { "aria-label": "Whole opcodes", hidden: true });
    this.title = make("p.small.dim");
    this.element = make(`section.side.mode-${mode}`, { "aria-label": word },
      make("div.panelhead", {}, make("h2", {}, word), make("span.small.dim", {}, told), this.verdict), this.text, this.options, this.pieces.element, this.title, this.ledger.element);
    this.begin();
    setText(this.verdict, "");
  }

  begin() {
    Object.assign(this, { tokens: [], steps: [], looked: null, pinned: null, left: null, written: "", ended: false });
    setText(this.verdict, "waiting");
    this.verdict.className = "small verdict";
    this.options.hidden = true;
    this.paint();
  }

  take(line) {
    if (line.event === "token") {
      line.token.logprob = number(line.token.logprob);
      this.tokens.push({ ...line.token, forced: line.token.forced, step: line.step ? this.tokens.length : null });
      this.steps.push(line.step ? stepNumbers(line.step) : null);
      this.written += line.token.text ?? (line.token.hex ? `<${line.token.hex}>` : "");
      if (this.left === null) setText(this.verdict, "writing");
    } else if (line.event === "left") {
      this.left = line.at;
      setText(this.verdict, `left what is legal at token ${line.at}`);
      this.verdict.className = "small verdict broken";
    } else if (line.event === "done") this.finish(line);
    this.paint();
  }

  finish(line) {
    this.ended = true;
    this.written = line.text;
    const judged = line.valid ? "valid" : line.stopped ? "stopped" : line.fault ? `not valid: ${line.fault}` : "not valid";
    const parts = [
      judged, line.closed ? "closed: its tokens were used up" : null,
      `${count(line.tokens)} tokens (${count(line.forced)} forced)`, duration(number(line.ms)),
    ];
    setText(this.verdict, parts.filter(Boolean).map((part) => inLine(part, 240)).join(" · "));
    this.verdict.className = `small verdict ${line.valid ? "verified" : line.stopped ? "" : "broken"}`;
    const options = (line.options ?? []).map(optionNumbers).sort((a, b) => (b.probability ?? -1) - (a.probability ?? -1)).slice(0, MOST_OPTIONS);
    this.options.hidden = options.length === 0;
    this.options.replaceChildren(...options.map((option) => make(option.chosen ? "li.chosen" : "li", { vars: { fill: `${100 * (option.probability ?? 0)}%` } },
      `${inLine(option.body)} ${percent(option.probability)} (${decimal(option.score, 2)})`)));
  }

  /** The stream is over, whatever came. */
  end() {
    if (this.ended) return;
    if (this.tokens.length || this.verdict.textContent === "waiting") setText(this.verdict, this.tokens.length ? "broken off" : "");
  }

  look(at) {
    this.looked = at;
    this.paint();
  }

  pin(at) {
    this.pinned = this.pinned === at ? null : at;
    this.paint();
  }

  letGo() {
    this.pinned = null;
    this.paint();
  }

  paint() {
    setText(this.text, inLines(this.written));
    setAttribute(this.text, "data-left", this.left);
    const last = this.tokens.length - 1;
    const at = this.looked ?? this.pinned ?? (last >= 0 ? this.lastChosen() : null);
    this.pieces.show(this.tokens, at, this.pinned);
    this.pieces.element.hidden = last < 0;
    const step = at === null ? null : this.steps[at];
    setText(this.title, at === null ? "" : `token ${at}${this.pinned === at ? ", pinned" : ""}`);
    this.ledger.show(step, at === null ? "" : "Forced: only this token was legal, so nothing was chosen here.");
  }

  lastChosen() {
    for (let at = this.tokens.length - 1; at >= 0; at--) if (this.steps[at]) return at;
    return this.tokens.length - 1;
  }
}
