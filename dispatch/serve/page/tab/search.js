// Finds the opcode with the highest score behind one prompt: best first, with a proof. One id is evaluated at a time.
//
// A log-probability only falls along a path, so what was summed up to a place, and the largest bonus below it, bounds every
// opcode below it. When the best finished opcode is not below any bound that is still open, it is the best of all
// (kernel/choose/search.py; there a pass holds many ids, here one sequence holds one path, so a pass has one).

import { TabError } from "./errors.js";
import { Heap } from "./heap.js";

/**
 * @param {Memory} memory
 * @param {{prompt: number[], opcodes: Opcodes, legal: Int32Array}} what legal: two or more, in the order of ids
 * @param {Float64Array} bonus added to the log-probability of each legal opcode
 * @param {(depth: number, ids: number[], row: Row, leaf: number) => void} watch told of each row with several legal ids
 * @returns {Promise<{place: number, raw: Float64Array, open: number, second: number, mass: number}>} place of the best in
 *   `legal`; raw: NaN where an opcode was not evaluated to its end; open: share of what was not, at most, as a multiple of
 *   the best; second: upper bound of the score of every other; mass: probability of the legal ids at the first branch
 */
export async function bestFirst(memory, { prompt, opcodes, legal }, bonus, watch) {
  const raw = new Float64Array(legal.length).fill(NaN);
  const heap = new Heap((a, b) => b.bound - a.bound || a.from - b.from);
  const begin = opcodes.shared(legal);
  let mass = null;
  let item = { from: 0, to: legal.length, depth: begin, value: 0, bound: 0, done: false };
  do {
    const leaf = legal[item.from];
    const row = await memory.row([...prompt, ...opcodes.sequence(leaf).subarray(0, item.depth)]);
    const parts = opcodes.parts(legal, item.from, item.to, item.depth);
    if (parts.length > 1) watch(item.depth, parts.map(({ id }) => id), row, leaf);
    mass ??= parts.reduce((sum, { id }) => sum + Math.exp(row.log(id)), 0);
    for (const { id, from, to } of parts) {
      const value = item.value + row.log(id);
      const done = to === from + 1 && item.depth + 1 >= opcodes.scored[legal[from]];
      if (done) raw[from] = value;
      heap.push({ from, to, depth: item.depth + 1, value, bound: value + largest(bonus, from, to), done });
    }
    item = heap.pop();
  } while (!item.done);
  if (!Number.isFinite(item.bound)) throw new TabError("row", `None of ${legal.length} legal opcodes has a finite probability; take another model, or a shorter prompt.`);
  const others = heap.items.filter((each) => !each.done);
  const open = others.reduce((sum, each) => sum + Math.exp(each.bound - item.bound), 0);
  return { place: item.from, raw, open, second: heap.size ? heap.top.bound : -Infinity, mass };
}

function largest(values, from, to) {
  let found = -Infinity;
  for (let at = from; at < to; at++) if (values[at] > found) found = values[at];
  return found;
}
