// Looks at the head of a GGUF file before the runtime does: whether it is one, and whether all of its tensors are there.
// The format is described in ggml's docs/gguf.md.

import { TabError, short } from "./errors.js";

const MAGIC = 0x46554747;
const FIRST = 1 << 20;
/** Bytes of each kind of value; 8 is a text, 9 an array. */
const WIDTHS = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
/** Values and bytes of a block of each type of tensor, by ggml's number. */
const BLOCKS = {
  0: [1, 4], 1: [1, 2], 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24], 8: [32, 34], 10: [256, 84], 11: [256, 110],
  12: [256, 144], 13: [256, 176], 14: [256, 210], 16: [256, 66], 17: [256, 74], 18: [256, 98], 19: [256, 50], 20: [32, 18],
  21: [256, 110], 22: [256, 82], 23: [256, 136], 24: [1, 1], 25: [1, 2], 26: [1, 4], 27: [1, 8], 28: [1, 8], 29: [256, 56],
  30: [1, 2], 34: [256, 54], 35: [256, 66], 39: [32, 17],
};

/**
 * Return how many bytes a model file needs to have.
 * @param {Blob} blob
 * Throws a TabError: `model` for a file of another kind, `cut` for one of which a part is missing.
 */
export async function check(blob) {
  for (let size = FIRST; ; size *= 4) {
    const whole = size >= blob.size;
    const head = new Reader(await blob.slice(0, size).arrayBuffer());
    let needed;
    try {
      needed = head.needed();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      if (!whole) continue;
      throw cut(blob.size, null);
    }
    if (blob.size < needed) throw cut(blob.size, needed);
    return needed;
  }
}

function cut(there, needed) {
  const told = needed === null ? `ends in its head, after ${there} bytes` : `has ${there} of ${needed} bytes`;
  return new TabError("cut", `The model file is cut: it ${told}. Fetch it again; where you picked a file, it was not copied whole.`);
}

/** Reads on from a place in bytes; a RangeError where they end. */
class Reader {
  constructor(buffer) {
    this.buffer = buffer;
    this.view = new DataView(buffer);
    this.at = 0;
  }

  /** Return where the last tensor ends. */
  needed() {
    const magic = this.u32();
    if (magic !== MAGIC) {
      const text = new TextDecoder("latin1").decode(this.buffer.slice(0, 4));
      throw new TabError("model", `This is no model: a GGUF file begins with "GGUF", and this one with ${short(text)}. Pick a file that ends in .gguf.`);
    }
    const version = this.u32();
    if (version < 2 || version > 3) throw new TabError("model", `The model file has version ${version} of GGUF, and 2 and 3 are read; convert it anew.`);
    const tensors = this.u64();
    let alignment = 32;
    for (let left = this.u64(); left > 0; left--) {
      const key = this.text();
      const value = this.value(this.u32());
      if (key === "general.alignment") alignment = value;
    }
    let end = 0;
    for (let left = tensors; left > 0; left--) end = Math.max(end, this.tensor());
    return Math.ceil(this.at / alignment) * alignment + end;
  }

  /** Return where one tensor ends, counted from the first one's begin. */
  tensor() {
    this.text();
    let values = 1;
    for (let left = this.u32(); left > 0; left--) values *= this.u64();
    const [count, bytes] = BLOCKS[this.u32()] ?? [1, 0];
    return this.u64() + (values / count) * bytes;
  }

  value(kind) {
    if (kind === 8) return this.skip(this.u64());
    if (kind === 9) {
      const of = this.u32();
      const count = this.u64();
      if (WIDTHS[of]) return this.skip(count * WIDTHS[of]);
      for (let left = count; left > 0; left--) this.value(of);
      return null;
    }
    if (!WIDTHS[kind]) throw new TabError("model", `The model file holds a value of the unknown kind ${kind}; it is damaged, fetch it again.`);
    return kind === 4 ? this.u32() : this.skip(WIDTHS[kind]);
  }

  skip(bytes) {
    if (this.at + bytes > this.buffer.byteLength) throw new RangeError("the bytes end here");
    this.at += bytes;
    return null;
  }

  text() {
    const begin = this.at + 8;
    this.skip(this.u64());
    return new TextDecoder().decode(this.buffer.slice(begin, this.at));
  }

  u32() {
    this.at += 4;
    return this.view.getUint32(this.at - 4, true);
  }

  u64() {
    this.at += 8;
    return Number(this.view.getBigUint64(this.at - 8, true));
  }
}
