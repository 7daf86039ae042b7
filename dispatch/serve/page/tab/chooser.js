// Makes decisions: gets the scores that a rule needs, compares them, says what came out.
//
// one legal opcode     -> it is forced, and the model is not asked
// the rule greedy      -> greedy.js: one id after the other
// one order            -> search.js: best first, until nothing else can win
// several orders       -> whole.js: every opcode whole, behind one order after the other, and their mean

import { walk } from "./greedy.js";
import { NullScores } from "./nulls.js";
import { asRead } from "./prompts.js";
import { best, bonusOf, ruleOf, sharesOf } from "./rule.js";
import { bestFirst } from "./search.js";
import { Seen } from "./seen.js";
import { readWhole, sums } from "./whole.js";

export class Chooser {
  /** @param {Memory} memory */
  constructor(memory) {
    this.memory = memory;
    this.nulls = new NullScores();
  }

  /** Choose one legal opcode; see TabKernel.decide for what is asked and what comes back. */
  async decide({ prompt, opcodes, legal: indices = null, rule: given = null, prior = null, ledger = false, rotated = false }) {
    const begun = performance.now();
    const before = { ...this.memory.cost };
    const legal = opcodes.legal(indices);
    const read = asRead(prompt, rotated);
    const rule = ruleOf(given, read.nulls.length > 0);
    const nulls = rule.name === "calibrated" ? read.nulls : [];
    const orders = nulls.length ? [read.main, ...read.rotations] : [read.main];
    const seen = new Seen(opcodes, ledger);
    const question = { opcodes, legal, rule, prior: prior && Float64Array.from(legal, (leaf) => prior[leaf]) };
    const found = await this.found(question, orders, nulls, seen);
    const index = legal[found.place];
    const ids = [...opcodes.sequence(index)];
    const chosen = choices(opcodes, legal, found.place);
    const cost = this.memory.cost;
    return {
      index, text: opcodes.text(index), label: opcodes.label(index), ids, rule: rule.name, leaves: [...legal],
      scores: [...found.scores], raw: [...found.raw], null: found.null && [...found.null], shares: [...found.shares],
      margin: found.margin, mass: found.mass, chosen, forced: ids.length - chosen, stop: chosen ? "complete" : "forced",
      decodes: cost.decodes - before.decodes, tokens: cost.tokens - before.tokens, kept: cost.kept - before.kept,
      rows: cost.rows - before.rows, refused: cost.refused - before.refused, ms: performance.now() - begun,
      prompt: read, ledger: seen.ledger(ids),
    };
  }

  async found(question, orders, nulls, seen) {
    const { opcodes, legal, rule, prior } = question;
    if (legal.length === 1) return { place: 0, scores: [0], raw: [0], null: null, shares: [1], margin: Infinity, mass: 1 };
    if (rule.name === "greedy") return this.greedy(question, orders[0], seen);
    const mean = nulls.length ? await this.nulls.mean(this.memory, nulls, opcodes, legal) : null;
    const bonus = bonusOf(rule, legal.length, mean, prior);
    return orders.length > 1 ? this.whole(question, orders, bonus, mean, seen) : this.searched(question, orders[0], bonus, mean, seen);
  }

  async greedy({ opcodes, legal }, prompt, seen) {
    const { place, value, share, margin, mass } = await walk(this.memory, { prompt, opcodes, legal }, seen.watch);
    const alone = (what) => Float64Array.from(legal, (_, at) => (at === place ? what : NaN));
    return { place, scores: alone(value), raw: alone(value), null: null, shares: alone(Math.exp(share)), margin, mass };
  }

  async searched({ opcodes, legal }, prompt, bonus, mean, seen) {
    const { place, raw, open, second, mass } = await bestFirst(this.memory, { prompt, opcodes, legal }, bonus, seen.watch);
    const scores = raw.map((value, at) => value + bonus[at]);
    return { place, scores, raw, null: mean, shares: sharesOf(scores, place, open), margin: scores[place] - second, mass };
  }

  async whole({ opcodes, legal }, orders, bonus, mean, seen) {
    const raw = new Float64Array(legal.length);
    let mass = 0;
    for (const [number, prompt] of orders.entries()) {
      const known = new Float64Array(opcodes.ids.length).fill(NaN);
      await readWhole(this.memory, { prompt, opcodes, legal }, known, number ? undefined : seen.watch);
      sums(opcodes, legal, known).forEach((sum, at) => (raw[at] += sum / orders.length));
      if (!number) mass = massOf(opcodes, legal, known);
    }
    const scores = raw.map((value, at) => value + bonus[at]);
    const place = best(scores);
    const second = scores.reduce((top, score, at) => (at !== place && score > top ? score : top), -Infinity);
    return { place, scores, raw, null: mean, shares: sharesOf(scores, place), margin: scores[place] - second, mass };
  }
}

/** Return how much of the vocabulary's probability the legal ids of the first branch have. */
function massOf(opcodes, legal, known) {
  const depth = opcodes.shared(legal);
  return opcodes.parts(legal, 0, legal.length, depth).reduce((sum, { from }) => sum + Math.exp(known[opcodes.starts[legal[from]] + depth]), 0);
}

/** Return at how many places on the way to an opcode more than one id was legal. */
function choices(opcodes, legal, place) {
  let [from, to, count] = [0, legal.length, 0];
  while (to - from > 1) {
    const parts = opcodes.parts(legal, from, to, opcodes.shared(legal, from, to));
    ({ from, to } = parts.find((part) => part.from <= place && place < part.to));
    count += 1;
  }
  return count;
}
