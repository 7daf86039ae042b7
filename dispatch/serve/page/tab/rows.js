// A row of the model: the probability of every id. Checks it, normalises it, and tells a step's ledger.

import { TabError } from "./errors.js";

/** Rows of a step in the ledger: the id taken and ten others. */
const ROWS = 11;
/** At least so many others are legal, and so many removed, where there are that many. */
const EACH = 2;

export class Row {
  /**
   * @param {{token: number, p: number}[]} entries every id once, the most probable first, as wllama gives them
   * @param {number} size of the vocabulary
   * Throws a TabError `row` for a row that cannot be trusted. wllama takes exponentials of the raw scores without
   * subtracting the largest, and adds them up in single precision: so they are looked at, and added up again here.
   */
  constructor(entries, size) {
    if (entries.length !== size) throw new TabError("row", `A row of ${entries.length} tokens for a vocabulary of ${size}; load the model again.`);
    const values = new Float64Array(size);
    let total = 0;
    let most = 0;
    let least = Infinity;
    for (const { token, p } of entries) {
      if (!(p >= 0 && p < Infinity)) {
        throw new TabError("row", `The model's row holds ${p} for token ${token}: its scores are no numbers, or too large for this runtime; load it again, or take another model.`);
      }
      values[token] = p;
      total += p;
      if (p > most) most = p;
      if (p < least) least = p;
    }
    if (!(total > 0)) throw new TabError("row", "The model's row has no probability at all; load it again, or take another model.");
    if (least === most) throw new TabError("row", `All ${size} tokens have one probability: the runtime shows a row that the model did not write; load the model again.`);
    this.values = values;
    this.total = total;
    this.logTotal = Math.log(total);
    this.first = entries.slice(0, 4 * ROWS).map(({ token }) => token);
  }

  /** Return the natural log-probability of an id in the whole vocabulary; -Infinity for one that is impossible. */
  log(id) {
    return Math.log(this.values[id]) - this.logTotal;
  }

  /** Return the place of an id among all, the most probable first, from 1; ties by id. */
  rank(id) {
    const { values } = this;
    const value = values[id];
    let before = 0;
    for (let other = 0; other < values.length; other++) if (values[other] > value || (values[other] === value && other < id)) before++;
    return before + 1;
  }

  /** Return the `count` most probable ids of some, or of all; ties by id. */
  strongest(count, some = null) {
    const { values } = this;
    const better = (a, b) => values[b] - values[a] || a - b;
    if (some) return [...some].sort(better).slice(0, count);
    const bound = values[this.first[Math.min(count, this.first.length) - 1]];
    const found = [];
    for (let id = 0; id < values.length; id++) if (values[id] >= bound) found.push(id);
    return found.sort(better).slice(0, count);
  }
}

/**
 * Return the ledger of a choosing step, as dispatch/log/ledger.py does: the id taken, the two strongest others that were
 * legal, the two strongest that were removed, and the strongest of the rest.
 * @param {number} at place of the id in the decision's ids
 * @param {Row} row
 * @param {number[]} legal ids that the mask let through
 * @param {number} taken the id that was chosen
 */
export function ledgerStep(at, row, legal, taken) {
  const allowed = new Set(legal);
  const strongest = row.strongest(2 * ROWS);
  const others = (ids) => ids.filter((id) => !allowed.has(id) && id !== taken);
  let removed = others(strongest);
  if (removed.length < EACH) removed = others(row.strongest(EACH + 1, row.values.keys().filter((id) => !allowed.has(id))));
  const rivals = row.strongest(EACH + 1, legal);
  const ids = [taken, ...rivals.filter((id) => id !== taken).slice(0, EACH), ...removed.slice(0, EACH)];
  for (const id of strongest) if (ids.length < ROWS && !ids.includes(id)) ids.push(id);
  const rows = ids.map((id) => ({ id, logprob: rounded(row.log(id)), legal: allowed.has(id), rank: strongest.includes(id) ? strongest.indexOf(id) + 1 : row.rank(id) }));
  rows.sort((a, b) => b.logprob - a.logprob || a.id - b.id);
  const mass = legal.reduce((sum, id) => sum + Math.exp(row.log(id)), 0);
  return { at, legal: allowed.size, mass: rounded(mass), rows };
}

function rounded(value) {
  return Number.isFinite(value) ? Math.round(value * 1e6) / 1e6 : value;
}
