// The rows of a decision in which something was chosen, kept until it is known which of them are on the way to the opcode.

import { ledgerStep } from "./rows.js";

/** Bytes of rows that are kept of one decision; a decision that reads more has no ledger. */
const LARGEST = 1 << 26;

export class Seen {
  /**
   * @param {Opcodes} opcodes
   * @param {boolean} wanted whether anybody asks for the ledger
   */
  constructor(opcodes, wanted) {
    this.opcodes = opcodes;
    this.rows = [];
    this.bytes = 0;
    /** Told of a row: how many ids of an opcode stand before it, the legal ids, the row, an opcode that begins so. */
    this.watch = (depth, ids, row, leaf) => {
      if (!wanted) return;
      this.bytes += row.values.byteLength;
      if (this.bytes <= LARGEST) this.rows.push({ depth, ids, row, leaf });
    };
  }

  /** Return the choosing steps on the way to an opcode, or nothing where there were too many rows to keep. */
  ledger(ids) {
    if (this.bytes > LARGEST) return [];
    const steps = new Map();
    for (const { depth, ids: legal, row, leaf } of this.rows) {
      const path = this.opcodes.sequence(leaf).subarray(0, depth);
      if (!steps.has(depth) && path.every((id, at) => ids[at] === id)) steps.set(depth, ledgerStep(depth, row, legal, ids[depth]));
    }
    return [...steps.values()].sort((a, b) => a.at - b.at);
  }
}
