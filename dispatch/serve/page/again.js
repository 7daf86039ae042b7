// "Decide again here": one decision made anew with another rule, model or edited prompt, beside the logged one.

import { get, number, post, sessionPath } from "./api.js";
import { make, setText } from "./dom.js";
import { chooser } from "./home.js";
import { Ledger } from "./ledger.js";
import { withNumbers } from "./session.js";
import { decimal, inLine, percent, pieceText } from "./shown.js";

const ROWS = 8;

export class Again {
  constructor(session, decision, hub) {
    Object.assign(this, { session, decision });
    const listed = hub.listed ?? { models: [], rules: [] };
    this.model = chooser("Model", ["", ...listed.models], (name) => name || "as logged");
    this.rule = chooser("Rule", ["", ...listed.rules], (name) => name || "as logged");
    this.edited = make("input", { type: "checkbox", id: "again-edit", on: { change: () => this.editPrompt() } });
    this.prompt = make("textarea", { rows: 6, hidden: true, spellcheck: "false", "aria-label": "Edited prompt", id: "again-prompt" });
    this.button = make("button.primary", { type: "submit" }, "Decide again");
    this.fault = make("p.fault-line", { role: "alert" });
    this.outcome = make("div.outcome", { role: "region", "aria-label": "Decided again", "aria-live": "polite" });
    this.element = make("div.again", {},
      make("form.againform", { on: { submit: (event) => { event.preventDefault(); this.run(); } } }, this.model.element, this.rule.element,
        make("div.check", {}, this.edited, make("label", { for: "again-edit" }, "edit the prompt")), this.button, this.prompt),
      this.fault, this.outcome);
    this.stop = new AbortController();
  }

  close() {
    this.stop.abort();
  }

  focus() {
    this.rule.field.focus();
  }

  async editPrompt() {
    this.prompt.hidden = !this.edited.checked;
    if (!this.edited.checked || this.prompt.value) return;
    try {
      const read = await get(sessionPath(this.session.name, `/d/${this.decision.n}/prompt`), this.stop.signal);
      this.prompt.value = read.orders[0]?.parts.map(({ text }) => text).join("") ?? "";
      this.control = read.orders[0]?.parts.some(({ control }) => control) ?? false;
    } catch (error) {
      this.say(error);
    }
  }

  say(error) {
    if (error.name !== "AbortError") setText(this.fault, inLine(error.message, 600));
  }

  async run() {
    setText(this.fault, "");
    this.button.disabled = true;
    setText(this.button, "Deciding…");
    try {
      const body = {
        model: this.model.field.value || null, rule: this.rule.field.value || null,
        prompt: this.edited.checked ? this.prompt.value : null, control: Boolean(this.control),
      };
      const made = await post(sessionPath(this.session.name, `/d/${this.decision.n}/again`), body, this.stop.signal);
      this.paint(made);
    } catch (error) {
      this.say(error);
    } finally {
      this.button.disabled = false;
      setText(this.button, "Decide again");
    }
  }

  paint(made) {
    for (const side of [made.then, made.now]) withNumbers(side);
    const behind = number(made.behind);
    const verdict = made.agrees ? "The same choice." : `Another choice; the logged one is ${decimal(behind)} behind.`;
    const changed = made.changed.length ? `Changed: ${made.changed.map((text) => inLine(text)).join(", ")}.` : "Nothing was changed.";
    this.outcome.replaceChildren(
      make(made.agrees ? "p.agrees" : "p.differs", {}, make("strong", {}, verdict), " ", changed, " ", ...made.notes.map((note) => inLine(note, 300))),
      this.table(made), this.ledgers(made));
  }

  table({ then, now }) {
    const byText = new Map();
    const put = (side, name) => side.options.forEach((option) => {
      if (!byText.has(option.text)) byText.set(option.text, { body: option.body });
      byText.get(option.text)[name] = option;
    });
    put(then, "then");
    put(now, "now");
    const best = ({ now: here, then: there }) => here?.probability ?? there?.probability ?? -1;
    const rows = [...byText.values()].sort((a, b) => best(b) - best(a)).slice(0, ROWS);
    const cells = (option) => [
      make("td.num", { role: "cell" }, decimal(option?.score ?? null, 3)), make("td.num", { role: "cell" }, percent(option?.probability ?? null)),
      make("td", { role: "cell" }, option?.chosen ? make("span.state.chosen", {}, "chosen") : ""),
    ];
    const head = (word, side) => make("th", { scope: "colgroup", colspan: 3, role: "columnheader" }, `${word}: ${[side.model, side.rule].filter(Boolean).map((text) => inLine(text, 40)).join(", ")}`);
    return make("table.versus", { role: "table", "aria-label": "Options, logged and decided again" },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, make("th", { scope: "col", role: "columnheader" }, "opcode"), head("logged", then), head("again", now))),
      make("tbody", { role: "rowgroup" }, ...rows.map((row) => make("tr", { role: "row" }, make("th.foreign.mono", { scope: "row", role: "rowheader" }, inLine(row.body)), ...cells(row.then), ...cells(row.now)))));
  }

  /** The first choosing step of the new decision; the logged one is a key away, under "Ledger". */
  ledgers({ now }) {
    const step = now.ledger[0];
    if (!step) return make("p.small.dim", {}, `Again: ${now.tokens.map(pieceText).join("")}`);
    const ledger = new Ledger("Ledger, decided again");
    ledger.show(step);
    const details = make("details", {}, make("summary.small", {}, `ledger of token ${step.at}, decided again`));
    details.addEventListener("toggle", () => details.open && details.append(ledger.element), { once: true });
    return details;
  }
}
