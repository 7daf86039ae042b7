// The ledger of a choosing step: eleven rows, the token taken and ten others, legal ones and ones that the mask removed.

import { make, setAttribute, setText, setVars } from "./dom.js";
import { count, decimal, percent, pieceSpoken, pieceText } from "./shown.js";

const HEADS = [
  ["rank", "rank", "in the whole vocabulary"], ["tok", "piece", "the token's text; ␣ is a space"], ["id", "id", "token id"],
  ["logp", "log-probability", "natural logarithm, before the mask"], ["before", "before", "probability before the mask"],
  ["after", "after", "probability after the mask"], ["what", "", "what became of it"],
];
/** The bar is empty at this log-probability, or at the lowest of the rows when that is lower. */
const FLOOR = -8;

export class Ledger {
  /** @param {string} label of the table, for those who hear it */
  constructor(label = "Ledger") {
    this.head = make("tr", { role: "row" }, ...HEADS.map(([name, word, told]) => make(`th.${name}`, { scope: "col", role: "columnheader", title: told }, word || "state")));
    this.body = make("tbody", { role: "rowgroup" });
    this.table = make("table.ledger", { role: "table", "aria-label": label }, make("thead", { role: "rowgroup" }, this.head), this.body);
    this.mass = make("div.mass", { "aria-hidden": "true" });
    this.sums = make("p.sums.small");
    this.nothing = make("p.nothing.dim", { hidden: true });
    this.element = make("div.ledgerbox", {}, this.table, this.nothing, this.mass, this.sums);
    this.rows = [];
  }

  /** Show a step; where there is none, `why` says so. */
  show(step, why = "") {
    const rows = step?.rows ?? [];
    this.table.hidden = rows.length === 0;
    this.nothing.hidden = rows.length > 0;
    setText(this.nothing, rows.length ? "" : why);
    this.sums.hidden = this.mass.hidden = rows.length === 0;
    while (this.rows.length < rows.length) this.rows.push(this.body.appendChild(make("tr", { role: "row" }, ...HEADS.map(([name]) => make(`td.${name}`, { role: "cell" })))));
    while (this.rows.length > rows.length) this.rows.pop().remove();
    const floor = Math.min(FLOOR, ...rows.map((row) => row.logprob).filter(Number.isFinite));
    rows.forEach((row, i) => paint(this.rows[i], row, floor, step.legal > 0));
    if (!rows.length) return;
    setText(this.sums, sums(step));
    setVars(this.mass, { fill: `${(100 * (step.mass ?? 0)).toFixed(1)}%` });
  }
}

function paint(element, row, floor, masked) {
  if (element.className !== row.state) element.className = row.state;
  const [rank, piece, id, logp, before, after, what] = element.children;
  setText(rank, row.rank === null ? "–" : count(row.rank));
  setText(piece, pieceText(row));
  setAttribute(piece, "aria-label", pieceSpoken(row));
  setText(id, String(row.id));
  setText(logp, decimal(row.logprob, 3));
  const share = Number.isFinite(row.logprob) ? Math.max(0, 1 - row.logprob / floor) : 0;
  setVars(logp, { fill: share.toFixed(4) });
  setText(before, percent(row.before));
  setText(after, !masked ? "–" : row.state === "removed" ? "0\u00a0%" : percent(row.after));
  setText(what, row.state);
  if (what.className !== `what state ${row.state}`) what.className = `what state ${row.state}`;
}

function sums({ legal, mass, chosen_rank: rank, forced_after: forced }) {
  const parts = [
    `${count(legal)} legal`, `${percent(mass)} legal mass`, rank === null ? null : `chosen is rank ${count(rank)}`,
    `${count(forced)} forced after it`,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** Why a token has no ledger, as a sentence. */
export function whyNoLedger(decision, token) {
  if (!decision) return "";
  if (!decision.tokens.length) return "This decision was made without a model, so there are no tokens to show.";
  if (token?.forced) return "Forced: only this token was legal, so nothing was chosen here.";
  return "The log keeps no ledger of this step. “Decide again here” evaluates it anew.";
}
