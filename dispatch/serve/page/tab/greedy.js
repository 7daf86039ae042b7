// The baseline: at each branch the most probable legal id, ties to the lowest. Scores no opcode whole.

import { TabError } from "./errors.js";

/**
 * @param {Memory} memory
 * @param {{prompt: number[], opcodes: Opcodes, legal: Int32Array}} what legal: two or more, in the order of ids
 * @param {(depth: number, ids: number[], row: Row, leaf: number) => void} watch told of each row
 * @returns {Promise<{place: number, value: number, share: number, margin: number, mass: number}>} value: log-probability
 *   of the ids that were a choice; share: the same among the legal ids of each branch; margin: of the closest choice
 */
export async function walk(memory, { prompt, opcodes, legal }, watch) {
  let from = 0;
  let to = legal.length;
  let value = 0;
  let share = 0;
  let margin = Infinity;
  let mass = null;
  while (to - from > 1) {
    const depth = opcodes.shared(legal, from, to);
    const leaf = legal[from];
    const row = await memory.row([...prompt, ...opcodes.sequence(leaf).subarray(0, depth)]);
    const parts = opcodes.parts(legal, from, to, depth);
    watch(depth, parts.map(({ id }) => id), row, leaf);
    const logs = parts.map(({ id }) => row.log(id));
    const top = Math.max(...logs);
    if (!Number.isFinite(top)) throw new TabError("row", `None of ${parts.length} legal ids has a finite probability; take another model, or a shorter prompt.`);
    const at = logs.indexOf(top);
    const sum = logs.reduce((total, log) => total + Math.exp(log), 0);
    mass ??= sum;
    value += top;
    share += top - Math.log(sum);
    margin = Math.min(margin, top - Math.max(...logs.filter((_, other) => other !== at)));
    ({ from, to } = parts[at]);
  }
  return { place: from, value, share, margin, mass };
}
