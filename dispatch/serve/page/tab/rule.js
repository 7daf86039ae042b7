// The rules by which log-probabilities become a decision: the arithmetic of kernel/choose/rule.py.

import { TabError, short } from "./errors.js";

export const RULES = ["greedy", "exact", "calibrated"];

/**
 * Return a rule with all its parameters; null is `calibrated` with null prompts and `exact` without.
 * @param {?{name: string, calibration?: number, planner_weight?: number}} rule
 * @param {boolean} nulls whether there are null prompts
 */
export function ruleOf(rule, nulls) {
  const { name, calibration = 1, planner_weight = 0 } = rule ?? { name: nulls ? "calibrated" : "exact" };
  if (!RULES.includes(name)) throw new TabError("usage", `The tab has no rule ${short(name)}; it has ${RULES.join(", ")}.`);
  if (!(calibration >= 0 && calibration <= 1)) throw new TabError("usage", `calibration=${short(calibration)} is outside 0..1.`);
  if (!Number.isFinite(planner_weight)) throw new TabError("usage", `planner_weight=${short(planner_weight)} is not a finite number.`);
  if (name === "calibrated" && !nulls) throw new TabError("usage", "The rule calibrated needs at least one null prompt; give one, or use exact.");
  return { name, calibration, planner_weight };
}

/**
 * Return what is added to the log-probability of each opcode; the highest sum wins.
 * @param {{calibration: number, planner_weight: number}} rule
 * @param {number} count of opcodes
 * @param {?Float64Array} nulls mean log-probability behind the null prompts, one an opcode
 * @param {?Float64Array} prior the planner's scores, NaN where it has none
 */
export function bonusOf({ calibration, planner_weight: weight }, count, nulls, prior) {
  const bonus = new Float64Array(count);
  if (nulls) for (let at = 0; at < count; at++) if (Number.isFinite(nulls[at])) bonus[at] -= calibration * nulls[at];
  const known = weight && prior ? prior.filter(Number.isFinite) : [];
  if (known.length) {
    const [low, high] = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    for (let at = 0; at < count; at++) bonus[at] += (weight * ((Number.isFinite(prior[at]) ? prior[at] : low) - high)) / (high - low || 1);
  }
  return bonus;
}

/** Return the place of the highest score, of equal ones the first; throws a TabError `row` where none is finite. */
export function best(scores) {
  let place = -1;
  for (let at = 0; at < scores.length; at++) if (scores[at] > (place < 0 ? -Infinity : scores[place])) place = at;
  if (place < 0 || !Number.isFinite(scores[place])) throw new TabError("row", `None of ${scores.length} legal opcodes has a finite probability; take another model, or a shorter prompt.`);
  return place;
}

/** Return the share of each score, NaN where there is none; `open` is what was not scored can have at most, as a multiple of the best. */
export function sharesOf(scores, place, open = 0) {
  const weights = scores.map((score) => Math.exp(score - scores[place]));
  const total = weights.reduce((sum, weight) => sum + (Number.isNaN(weight) ? 0 : weight), open);
  return weights.map((weight) => weight / total);
}
