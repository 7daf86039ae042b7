// The whole opcodes of a decision: raw, null, what the rule compared, what was learned, the share, and what came of it.

import { make, setText, setVars } from "./dom.js";
import { count, decimal, inLine, percent } from "./shown.js";

const PAGE = 12;
const HEADS = [
  ["body", "opcode", "as it is written"], ["raw", "raw", "log-probability behind the prompt"], ["null", "null", "log-probability behind the null prompts"],
  ["score", "score", "what the rule compared; under `calibrated` raw minus null"], ["learned", "learned", "score of the learned layer"],
  ["share", "share", "share among the legal opcodes"], ["what", "outcome", "what came of it"],
];

export class Opcodes {
  constructor() {
    this.body = make("tbody", { role: "rowgroup" });
    this.table = make("table.opcodes", { role: "table", "aria-label": "Whole opcodes" },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...HEADS.map(([name, word, told]) => make(`th.${name}`, { scope: "col", role: "columnheader", title: told }, word)))), this.body);
    this.back = make("button.icon.i-back", { type: "button", "aria-label": "Better opcodes", on: { click: () => this.turn(-PAGE) } });
    this.next = make("button.icon.i-step", { type: "button", "aria-label": "Worse opcodes", on: { click: () => this.turn(PAGE) } });
    this.place = make("span.small.dim");
    this.pager = make("p.pager", {}, this.back, this.place, this.next);
    this.planned = make("p.small.dim.foreign");
    this.element = make("div.opcodebox", {}, this.table, this.pager, this.planned);
    this.from = 0;
    this.rows = [];
  }

  show(decision) {
    if (decision !== this.decision) this.from = 0;
    this.decision = decision;
    this.sorted = [...(decision?.options ?? [])].sort((a, b) => rank(b) - rank(a));
    this.paint();
  }

  turn(step) {
    this.from = Math.max(0, this.from + step);
    this.paint();
  }

  paint() {
    const { decision, sorted } = this;
    const part = sorted.slice(this.from, this.from + PAGE);
    const taken = decision?.options[decision.chosen];
    if (this.from === 0 && taken && !part.includes(taken)) part.splice(-1, 1, taken);
    while (this.rows.length < part.length) this.rows.push(this.body.appendChild(make("tr", { role: "row" }, ...HEADS.map(([name]) => make(`td.${name}`, { role: "cell" })))));
    while (this.rows.length > part.length) this.rows.pop().remove();
    part.forEach((option, i) => this.paintRow(this.rows[i], option, option === taken));
    this.table.classList.toggle("unlearned", !sorted.some((option) => option.learned !== null));
    const legal = decision?.legal_count ?? sorted.length;
    this.pager.hidden = sorted.length <= PAGE && legal <= sorted.length;
    this.back.disabled = this.from === 0;
    this.next.disabled = this.from + PAGE >= sorted.length;
    const beyond = legal > sorted.length ? `; ${count(legal)} were legal, the log keeps ${count(sorted.length)}` : "";
    setText(this.place, `${this.from + 1} to ${Math.min(this.from + PAGE, sorted.length)} of ${sorted.length}${beyond}`);
    const offered = decision?.offered ?? [];
    setText(this.planned, !sorted.length ? "No opcodes are logged of this decision."
      : offered.length ? `Planner: ${offered.map(({ said, score, note, taken: yes }) => `${yes ? "✓ " : ""}${inLine(said)} ${decimal(score, 1)}${note ? ` (${inLine(note)})` : ""}`).join(" · ")}` : "");
  }

  paintRow(element, option, chosen) {
    const [body, raw, none, score, learned, share, what] = element.children;
    const state = chosen ? "chosen" : "legal";
    if (element.className !== state) element.className = state;
    setText(body, inLine(option.body));
    setText(raw, decimal(option.raw, 3));
    setText(none, decimal(option.null, 3));
    setText(score, decimal(option.score, 3));
    setText(learned, decimal(option.learned, 3));
    setText(share, percent(option.probability));
    setVars(share, { fill: (option.probability ?? 0).toFixed(4) });
    const { decision } = this;
    const came = decision.failed !== null ? "failed" : decision.refused ? "refused" : "chosen";
    setText(what, chosen ? came : "legal");
    what.className = `what state ${state}`;
  }
}

function rank(option) {
  const value = option.score ?? option.probability ?? option.raw;
  return value === null || Number.isNaN(value) ? -Infinity : value;
}
