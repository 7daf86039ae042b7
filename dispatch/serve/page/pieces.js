// The tokens of a decision as buttons: hover or focus looks at a step, a click pins it. Forced ones are dashed.

import { keepFocus, make, setAttribute, setText } from "./dom.js";
import { decimal, pieceSpoken, pieceText } from "./shown.js";

const MOST = 40;

export class Pieces {
  /**
   * @param {object} of `look(at or null)` when a token is pointed at or left, `pin(at)` when one is clicked
   */
  constructor({ look, pin }) {
    Object.assign(this, { look, pin, tokens: [], from: 0, buttons: [] });
    this.list = keepFocus(make("div.pieces", { role: "group", "aria-label": "Tokens of this decision" }));
    this.more = make("button.quiet.small", { hidden: true, type: "button", on: { click: () => this.turn() } });
    this.element = make("div.piecebox", {}, this.list, this.more);
    const at = (event) => event.target.closest("button")?.at ?? null;
    this.list.addEventListener("pointerover", (event) => event.pointerType !== "touch" && this.look(at(event)));
    this.list.addEventListener("pointerleave", () => this.look(null));
    this.list.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && this.look(at(event)));
    this.list.addEventListener("focusout", () => this.look(null));
    this.list.addEventListener("click", (event) => at(event) !== null && this.pin(at(event)));
    this.list.addEventListener("keydown", (event) => this.key(event));
  }

  /** Show tokens; `shown` is the one whose ledger is shown, `pinned` the one that is pinned, or null. */
  show(tokens, shown, pinned) {
    if (tokens !== this.tokens) this.from = 0;
    this.tokens = tokens;
    if (shown !== null && (shown < this.from || shown >= this.from + MOST)) this.from = MOST * Math.floor(shown / MOST);
    const part = tokens.slice(this.from, this.from + MOST);
    while (this.buttons.length < part.length) this.buttons.push(this.list.appendChild(make("button.piece", { type: "button" })));
    while (this.buttons.length > part.length) this.buttons.pop().remove();
    part.forEach((token, i) => this.paint(this.buttons[i], token, this.from + i, shown, pinned));
    this.more.hidden = tokens.length <= MOST;
    setText(this.more, `tokens ${this.from} to ${this.from + part.length - 1} of ${tokens.length}; show the next`);
  }

  paint(button, token, at, shown, pinned) {
    button.at = at;
    const known = token.text !== null || token.hex !== null;
    setText(button, known ? pieceText(token) : `#${token.id}`);
    const odd = token.hex !== null ? " bytes" : token.control ? " control" : "";
    const kind = token.forced ? "forced" : token.step === null ? "unseen" : "choice";
    const wanted = `piece ${kind}${odd}${at === shown ? " shown" : ""}`;
    if (button.className !== wanted) button.className = wanted;
    const sure = token.logprob === null ? null : Math.exp(token.logprob);
    button.style.setProperty("--sure", sure === null ? "0%" : `${Math.max(4, 100 * sure)}%`);
    const how = token.forced ? "forced" : token.step === null ? "no ledger" : `chosen, log-probability ${decimal(token.logprob)}`;
    setAttribute(button, "aria-label", `token ${at}: ${known ? pieceSpoken(token) : `id ${token.id}`}, ${token.control ? "control token, " : ""}${how}`);
    setAttribute(button, "aria-pressed", at === pinned ? "true" : "false");
    button.tabIndex = at === (shown ?? this.from) ? 0 : -1;
  }

  turn() {
    this.from = this.from + MOST < this.tokens.length ? this.from + MOST : 0;
    this.show(this.tokens, null, null);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.buttons.indexOf(document.activeElement);
    this.buttons[Math.min(Math.max(at + step, 0), this.buttons.length - 1)]?.focus();
  }
}
