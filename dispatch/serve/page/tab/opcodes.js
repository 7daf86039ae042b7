// Compiled opcodes as kernel/trie/tab.py writes them: the sequences of ids in the order of their ids, which is a trie.
//
//   rank   ids                 a *run* is a range of legal opcodes, by rank, that begin with the same ids
//   0      4                   run 0..3 of depth 0 parts by its first id into 0..1 (id 4) and 1..3 (id 5)
//   1      5  6  7             run 1..3 of depth 1 has one part (id 6): nothing to choose
//   2      5  6  8  9          run 1..3 of depth 2 parts into 1..2 (id 7) and 2..3 (id 8)

import { readArrays, strings } from "./arrays.js";
import { TabError, short } from "./errors.js";

const KIND = { magic: "\x93CKTABT\n", version: 1, what: "set of opcodes", again: "load the page again, or compile the set again" };

export class Opcodes {
  /**
   * @param {ArrayBuffer} buffer the asset
   * @param {string} fingerprint of the vocabulary of the model that is loaded
   * Throws a TabError: `asset` for bytes that are none, `vocabulary` for opcodes of another vocabulary.
   */
  constructor(buffer, fingerprint) {
    const { keys, arrays } = readArrays(buffer, KIND);
    if (keys.tokenizer !== fingerprint) {
      throw new TabError("vocabulary", `These opcodes were compiled for the vocabulary ${short(keys.tokenizer)} and the model has ${short(fingerprint)}; take the model that they are for, or compile them for this one.`);
    }
    this.fingerprint = keys.opcodes;
    this.ids = arrays.ids;
    this.starts = arrays.starts;
    /** Rank to opcode. */
    this.order = arrays.order;
    /** How many leading ids of each opcode count in its score. */
    this.scored = arrays.scored;
    this.size = this.order.length;
    this.texts = strings(arrays.texts, arrays.text_ends);
    this.labels = arrays.labels ? strings(arrays.labels, arrays.label_ends) : this.texts;
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  }

  /** Return what an opcode is on the wire. */
  text(index) {
    return this.decoder.decode(this.texts(index));
  }

  /** Return what people see of an opcode. */
  label(index) {
    return this.decoder.decode(this.labels(index));
  }

  /** Return the ids of an opcode; a view. */
  sequence(index) {
    return this.ids.subarray(this.starts[index], this.starts[index + 1]);
  }

  /** Return the opcodes in the order of ids: all of them, or the ones that are named, each once. */
  legal(indices = null) {
    if (indices === null) return this.order;
    if (!this.ranks) {
      this.ranks = new Int32Array(this.size);
      this.order.forEach((leaf, rank) => (this.ranks[leaf] = rank));
    }
    const ranks = Int32Array.from(new Set(indices), (index) => {
      if (!(Number.isInteger(index) && index >= 0 && index < this.size)) throw new TabError("usage", `There is no opcode ${short(index)}; the set has those from 0 to ${this.size - 1}.`);
      return this.ranks[index];
    });
    if (!ranks.length) throw new TabError("usage", "No opcode is legal; a step needs at least one.");
    return ranks.sort().map((rank) => this.order[rank]);
  }

  /**
   * Return the parts of a run, by the id that stands at a depth, in the order of ids.
   * @param {Int32Array} legal opcodes in the order of ids
   * @returns {{id: number, from: number, to: number}[]}
   */
  parts(legal, from, to, depth) {
    const found = [];
    const { ids, starts } = this;
    while (from < to) {
      const id = ids[starts[legal[from]] + depth];
      let low = from + 1;
      for (let step = 1, high = to; low < high; ) { // the next id begins near or far: step further each time, then halve
        const probe = Math.min(low + step, high) - 1;
        if (ids[starts[legal[probe]] + depth] === id) {
          low = probe + 1;
          step *= 2;
        } else {
          high = probe;
          step = Math.max(1, (high - low) >> 1);
        }
      }
      found.push({ id, from, to: low });
      from = low;
    }
    return found;
  }

  /** Return the legal ids behind others; none where no legal opcode begins so, or one ends there. */
  next(legal, ids) {
    let [from, to] = [0, legal.length];
    for (let depth = 0; depth <= ids.length; depth++) {
      if (to - from === 1 && this.sequence(legal[from]).length <= depth) return [];
      const parts = this.parts(legal, from, to, depth);
      if (depth === ids.length) return parts.map(({ id }) => id);
      const taken = parts.find(({ id }) => id === ids[depth]);
      if (!taken) return [];
      ({ from, to } = taken);
    }
    return [];
  }

  /** Return how many ids all opcodes of a run begin with; of one opcode, all of them. */
  shared(legal, from = 0, to = legal.length) {
    const first = this.sequence(legal[from]);
    const last = this.sequence(legal[to - 1]);
    let depth = 0;
    while (depth < first.length && depth < last.length && first[depth] === last[depth]) depth++;
    return depth;
  }
}
