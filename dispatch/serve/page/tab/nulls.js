// What null prompts said of opcodes: read once, and kept for decisions that come again.

import { readArrays, strings } from "./arrays.js";
import { TabError } from "./errors.js";
import { readWhole, spans, sums } from "./whole.js";

const KIND = { magic: "\x93CKTABN\n", version: 1, what: "file of null prompts", again: "load the page again, or make the file again" };
/** Rows that a null prompt may cost; some two minutes of a small model. */
const LIMIT = 2000;
/** Null prompts that are kept. */
const KEPT = 512;

export class NullScores {
  constructor() {
    this.known = new Map();
  }

  /**
   * Return the mean log-probability of each legal opcode behind null prompts, which are read where they are not known.
   * Throws a TabError `usage` for a legal set that would take too long.
   */
  async mean(memory, nulls, opcodes, legal) {
    const { rows } = spans(opcodes, legal);
    const mean = new Float64Array(legal.length);
    for (const prompt of nulls) {
      const known = this.recall(opcodes, prompt);
      if (rows > LIMIT && !known.whole) throw new TabError("usage", `A null prompt of ${legal.length} legal opcodes needs ${rows} passes in the tab; use the rule exact, which looks into few of them, or fewer opcodes.`);
      if (!known.whole) await readWhole(memory, { prompt, opcodes, legal }, known.values);
      sums(opcodes, legal, known.values).forEach((sum, at) => (mean[at] += sum / nulls.length));
    }
    return mean;
  }

  /**
   * Take what null prompts said of every opcode, as kernel/choose/tab_nulls.py reads it.
   * @param {Opcodes} opcodes
   * @param {ArrayBuffer} buffer
   * @param {string} weights name of the model's; empty where this browser cannot tell it
   * Throws a TabError: `asset` for bytes that are none, `vocabulary` for those of other opcodes or of another model.
   */
  take(opcodes, buffer, weights) {
    const { keys, arrays } = readArrays(buffer, KIND);
    if (keys.opcodes !== opcodes.fingerprint) throw new TabError("vocabulary", "These null prompts were read over other opcodes; make them again for these.");
    if (weights && keys.weights !== weights) throw new TabError("vocabulary", "These null prompts were read by another model; make them again with this one, or load the one that they are for.");
    const prompt = strings(arrays.prompts, arrays.prompt_ends);
    const size = opcodes.ids.length;
    for (let at = 0; at < arrays.prompt_ends.length; at++) {
      Object.assign(this.recall(opcodes, prompt(at)), { values: arrays.values.subarray(at * size, (at + 1) * size), whole: true });
    }
  }

  recall(opcodes, prompt) {
    const key = `${opcodes.fingerprint} ${prompt}`;
    const found = this.known.get(key) ?? { values: new Float64Array(opcodes.ids.length).fill(NaN), whole: false };
    this.known.delete(key);
    this.known.set(key, found);
    if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value);
    return found;
  }
}
