// Arrays in one block of bytes behind a JSON header, as kernel/trie/arrays.py writes them. The arrays are looked at where
// they lie: nothing is copied, and only the header is parsed. Little-endian, as every browser is.

import { TabError, short } from "./errors.js";

const HEAD = 16;
const ALIGN = 64;
const TYPES = { "<i4": Int32Array, "<i8": BigInt64Array, "<f8": Float64Array, "|u1": Uint8Array };
const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/**
 * Return the keys and arrays of a block.
 * @param {ArrayBuffer} buffer
 * @param {{magic: string, version: number, what: string, again: string}} kind
 * @returns {{keys: Object<string, string>, arrays: Object<string, TypedArray>}}
 * Throws a TabError `asset` for bytes that are foreign, cut off, damaged or of another version.
 */
export function readArrays(buffer, { magic, version, what, again }) {
  const bytes = new Uint8Array(buffer);
  const begins = String.fromCharCode(...bytes.subarray(0, magic.length));
  if (begins !== magic) throw new TabError("asset", `This is not a ${what}: it begins with ${short(begins)}; ${again}.`);
  if (bytes.length < HEAD) throw new TabError("asset", `The ${what} is cut off after ${bytes.length} bytes; ${again}.`);
  const view = new DataView(buffer);
  const found = view.getUint32(8, true);
  if (found !== version) throw new TabError("asset", `The ${what} has format ${found} and this page reads ${version}; ${again}.`);
  const end = HEAD + view.getUint32(12, true);
  if (bytes.length < end + 4) throw new TabError("asset", `The ${what} is cut off in its header; ${again}.`);
  if (checksum(bytes.subarray(0, end)) !== view.getUint32(end, true)) throw new TabError("asset", `The ${what} is damaged in its header; ${again}.`);
  const { arrays: rows, size, ...keys } = JSON.parse(new TextDecoder().decode(bytes.subarray(HEAD, end)));
  const start = Math.ceil((end + 4) / ALIGN) * ALIGN;
  if (bytes.length !== start + size) throw new TabError("asset", `The ${what} has ${bytes.length} bytes of ${start + size}; ${again}.`);
  const arrays = {};
  for (const { name, type, count, at, sum } of rows) {
    arrays[name] = new TYPES[type](buffer, start + at, count);
    if (checksum(new Uint8Array(buffer, start + at, arrays[name].byteLength)) !== sum) throw new TabError("asset", `The ${what} is damaged in ${short(name)}; ${again}.`);
  }
  return { keys, arrays };
}

/** Return the CRC-32 of bytes, as zlib computes it. */
export function checksum(bytes) {
  let value = 0xffffffff;
  for (let at = 0; at < bytes.length; at++) value = TABLE[(value ^ bytes[at]) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** Return how to read strings of bytes or ids that stand one behind the other: a function from their number to each. */
export function strings(whole, ends) {
  return (number) => whole.subarray(number ? ends[number - 1] : 0, ends[number]);
}
