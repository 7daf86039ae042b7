// What stands beside the stage: the tokens of the shown decision and three tabs below them, or "decide again".

import { Again } from "./again.js";
import { exported } from "./exported.js";
import { keepFocus, make, setAttribute, setText } from "./dom.js";
import { Ledger, whyNoLedger } from "./ledger.js";
import { Opcodes } from "./opcodes.js";
import { Pieces } from "./pieces.js";
import { PromptView } from "./prompt.js";
import { count, inLine, pieceText } from "./shown.js";

export const TABS = [["ledger", "Ledger"], ["opcodes", "Whole opcodes"], ["prompt", "Prompt"]];
let lastTab = "ledger";

export class Panel {
  constructor(session, hub) {
    this.session = session;
    this.ledger = new Ledger();
    this.opcodes = new Opcodes();
    this.prompt = new PromptView(session);
    this.again = null;
    this.pieces = new Pieces({ look: (at) => session.look(at), pin: (at) => this.togglePin(at) });
    this.title = make("h2");
    this.pinNote = make("button.small.icon.i-pin.pinnote", { type: "button", hidden: true, on: { click: () => session.pin(null) } }, "let go");
    this.askAgain = make("button.small", { type: "button", "aria-expanded": "false", title: "Decide again here (a)", on: { click: () => this.toggleAgain() } }, "Decide again…");
    this.tabs = TABS.map(([name, word], i) => make("button.tab", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "tabpanel", title: `${word} (${i + 1})`, on: { click: () => this.open(name) },
    }, word));
    this.tablist = keepFocus(make("div.tabs", { role: "tablist", "aria-label": "What of this decision", on: { keydown: (event) => this.key(event) } }, ...this.tabs));
    this.body = make("div.tabpanel", { role: "tabpanel", id: "tabpanel", tabindex: "0" });
    this.element = make("section.panel", { "aria-label": "Inside the decision" },
      make("div.panelhead", {}, this.title, this.pinNote, this.askAgain), this.pieces.element, this.tablist, this.body);
    this.hub = hub;
    this.tab = lastTab;
    this.stop = new AbortController();
    for (const event of ["decision", "pin", "look"]) session.addEventListener(event, () => this.paint(), { signal: this.stop.signal });
    this.paint();
  }

  close() {
    this.stop.abort();
    this.prompt.close();
    this.again?.close();
  }

  /** Show a tab by name. */
  open(name) {
    this.tab = lastTab = name;
    this.closeAgain();
    this.paint();
  }

  togglePin(at) {
    const { session } = this;
    const { shown, pinned } = session;
    if (!shown) return;
    if (pinned && pinned.n === shown.n && pinned.token === at) session.pin(null);
    else session.pin(shown.n, at);
  }

  toggleAgain() {
    if (this.again) return this.closeAgain();
    const { shown } = this.session;
    if (!shown || exported) return undefined;
    this.again = new Again(this.session, shown, this.hub);
    this.paint();
    this.again.focus();
    return undefined;
  }

  closeAgain() {
    if (!this.again) return;
    this.again.close();
    this.again = null;
    this.paint();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (TABS.findIndex(([name]) => name === this.tab) + step + TABS.length) % TABS.length;
    this.open(TABS[next][0]);
    this.tabs[next].focus();
  }

  paint() {
    const { session, pieces } = this;
    const { shown: decision, token: at, pinned, fault } = session;
    if (this.again && this.again.decision.n !== decision?.n) return this.closeAgain();
    const tokens = decision?.tokens ?? [];
    setText(this.title, decision ? `Decision ${count(decision.n)}${at === null ? "" : `, token ${at}`}` : "No decision");
    this.pinNote.hidden = !pinned;
    if (pinned) setAttribute(this.pinNote, "aria-label", `Pinned: decision ${pinned.n}, token ${pinned.token}; let go`);
    this.element.classList.toggle("pinned", Boolean(pinned));
    this.askAgain.disabled = !decision;
    this.askAgain.hidden = exported !== null;
    setAttribute(this.askAgain, "aria-expanded", this.again ? "true" : "false");
    pieces.show(tokens, at, pinned && pinned.n === decision?.n ? pinned.token : null);
    pieces.element.hidden = tokens.length === 0;
    this.tabs.forEach((tab, i) => {
      const selected = !this.again && TABS[i][0] === this.tab;
      setAttribute(tab, "aria-selected", selected ? "true" : "false");
      tab.tabIndex = selected || (this.again && i === 0) ? 0 : -1;
    });
    setAttribute(this.body, "aria-labelledby", `tab-${this.tab}`);
    if (fault && !pinned) return this.say(fault.message);
    if (!decision) return this.say("No decision yet.");
    if (this.again) return this.put(this.again.element);
    if (this.tab === "opcodes") {
      this.opcodes.show(decision);
      this.put(this.opcodes.element);
    } else if (this.tab === "prompt") {
      this.prompt.show(decision);
      this.put(this.prompt.element);
    } else {
      const token = at === null ? null : tokens[at];
      this.ledger.show(token && token.step !== null ? decision.ledger[token.step] : null, whyNoLedger(decision, token));
      this.put(this.ledger.element);
    }
    return undefined;
  }

  put(element) {
    if (this.body.firstChild !== element || this.body.childNodes.length !== 1) this.body.replaceChildren(element);
  }

  say(text) {
    this.body.replaceChildren(make("p.nothing.dim", {}, inLine(text, 600)));
  }
}

/** A decision's tokens in one line, for lists and titles. */
export function spelled(tokens) {
  return tokens.map(pieceText).join("");
}
