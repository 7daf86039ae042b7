// The whole session in columns: one entry a decision in typed arrays, 18 bytes each, that grow as decisions come.

/** Bits of `flags`, by name, in the order in which they are told; what a person is told of each. */
export const FLAGS = {
  refused: { bit: 1, word: "refused", told: "the engine did not allow it" },
  failed: { bit: 2, word: "failed", told: "what it does outside failed" },
  forced: { bit: 4, word: "forced", told: "only one opcode was legal" },
  closed: { bit: 8, word: "closed", told: "its tokens were used up" },
  illegalTop: { bit: 16, word: "illegal top", told: "the mask removed the strongest token" },
  wish: { bit: 32, word: "wish", told: "the model would rather have had what is not legal" },
};
export const LOW = 64;
export const HAS_LEDGER = 128;

/** Return the words for a decision's flags. */
export function flagWords(flags) {
  return Object.values(FLAGS).filter(({ bit }) => flags & bit).map(({ word }) => word);
}

const MAGIC = 0x5254534b;
const HEAD = 32;
const KINDS = { margin: Float32Array, ms: Float32Array, at_ms: Float32Array, flags: Uint16Array, cartridge: Uint8Array, outcome: Uint8Array };

/** Columns of a session. Decision `n` counts from 1 and stands at place `n - 1`. */
export class Columns {
  constructor() {
    this.count = 0;
    this.generation = null;
    this.complete = false;
    this.room = 0;
    for (const name of Object.keys(KINDS)) this[name] = new KINDS[name](0);
  }

  /** Take what `/strip` answered; returns whether it follows what is here. */
  takeBytes(buffer) {
    const [magic, version, generation, from, count, , complete] = new Uint32Array(buffer, 0, HEAD / 4);
    if (magic !== MAGIC || version !== 1) throw new Error("The strip has a form that this page does not know.");
    if (this.generation !== null && generation !== this.generation) return false;
    if (from > this.count + 1) return false;
    this.generation = generation;
    this.complete = complete === 1;
    this.makeRoom(from - 1 + count);
    let at = HEAD;
    for (const [name, Kind] of Object.entries(KINDS)) {
      this[name].set(new Kind(buffer, at, count), from - 1);
      at += count * Kind.BYTES_PER_ELEMENT;
    }
    this.count = Math.max(this.count, from - 1 + count);
    return true;
  }

  /** Take the data of a `decisions` event; returns whether it follows what is here. */
  takeEvent(data) {
    if (data.from > this.count + 1) return false;
    this.makeRoom(data.from - 1 + data.count);
    for (const name of Object.keys(KINDS)) {
      const column = this[name];
      data[name].forEach((value, i) => { column[data.from - 1 + i] = value === null ? NaN : value === "inf" ? Infinity : value === "-inf" ? -Infinity : value; });
    }
    this.count = Math.max(this.count, data.from - 1 + data.count);
    return true;
  }

  /** Return the margin of decision `n`; NaN where it is not known. */
  marginOf(n) {
    return n >= 1 && n <= this.count ? this.margin[n - 1] : NaN;
  }

  makeRoom(wanted) {
    if (wanted <= this.room) return;
    this.room = Math.max(wanted, 2 * this.room, 256);
    for (const [name, Kind] of Object.entries(KINDS)) {
      const larger = new Kind(this.room);
      larger.set(this[name].subarray(0, this.count));
      this[name] = larger;
    }
  }
}
