// Scores every legal opcode whole behind a prompt: what the rule calibrated needs of its null prompts.
//
// Opcodes are visited in the order of ids, so the one sequence of the runtime walks the tree from left to right, and what
// two neighbours share is evaluated once. What was read stands by opcode and place, so it answers for smaller legal sets too.

/**
 * Return which places of each opcode count: from the first branch to its last scored id, or to the id that tells it from all
 * other legal ones when that comes later.
 * @returns {{begin: number, ends: Int32Array, rows: number}} ends: one past the last place, one an opcode of `legal`; rows
 *   that are read for all of them
 */
export function spans(opcodes, legal) {
  const begin = opcodes.shared(legal);
  const ends = new Int32Array(legal.length);
  let before = -1;
  let rows = 0;
  for (let at = 0; at < legal.length; at++) {
    const behind = at + 1 < legal.length ? opcodes.shared(legal, at, at + 2) : 0;
    ends[at] = Math.max(opcodes.scored[legal[at]], Math.max(before, behind) + 1);
    rows += Math.max(0, ends[at] - Math.max(begin, before + 1));
    before = behind;
  }
  return { begin, ends, rows };
}

/**
 * Read what is not known yet of each legal opcode behind a prompt.
 * @param {Memory} memory
 * @param {{prompt: number[], opcodes: Opcodes, legal: Int32Array}} what legal: two or more, in the order of ids
 * @param {Float64Array} known log-probabilities by place in `opcodes.ids`, NaN where nothing is known; filled
 * @param {(depth: number, ids: number[], row: Row, leaf: number) => void} watch told of each row with several legal ids
 * @returns {Promise<number>} rows that were read
 */
export async function readWhole(memory, { prompt, opcodes, legal }, known, watch = () => {}) {
  const { begin, ends } = spans(opcodes, legal);
  const { starts } = opcodes;
  let rows = 0;
  for (let at = 0; at < legal.length; at++) {
    for (let depth = begin; depth < ends[at]; depth++) {
      if (!Number.isNaN(known[starts[legal[at]] + depth])) continue;
      const row = await memory.row([...prompt, ...opcodes.sequence(legal[at]).subarray(0, depth)]);
      rows += 1;
      let to = at + 1; // the opcodes behind this one that begin with the same ids; those in front of it have been here
      while (to < legal.length && opcodes.shared(legal, at, to + 1) >= depth) to++;
      const parts = opcodes.parts(legal, at, to, depth);
      if (parts.length > 1) watch(depth, parts.map(({ id }) => id), row, legal[at]);
      for (const part of parts) {
        const log = row.log(part.id);
        for (let each = part.from; each < part.to; each++) known[starts[legal[each]] + depth] = log;
      }
    }
  }
  return rows;
}

/** Return the log-probability of each legal opcode, from the first branch on, out of what was read. */
export function sums(opcodes, legal, known) {
  const { begin, ends } = spans(opcodes, legal);
  return Float64Array.from(legal, (leaf, at) => {
    let sum = 0;
    for (let depth = begin; depth < ends[at]; depth++) sum += known[opcodes.starts[leaf] + depth];
    return sum;
  });
}
