// The vocabulary of the model in the tab, and tokenization that is exact: the same ids as kernel/text/vocabulary.py.
//
// wllama tokenizes and tells the bytes of each id, but no attributes; they come in an asset, which is held against the
// model piece by piece.

import { readArrays, strings } from "./arrays.js";
import { TabError, short } from "./errors.js";

const KIND = { magic: "\x93CKTABV\n", version: 1, what: "vocabulary", again: "load the page again" };
const UNKNOWN = 1;
const UNUSED = 2;
const CONTROL = 8;
/** What stands before a text when the tokenizer invents a space at its start; its own ids are cut off again. */
const SENTINELS = ["\n", "\x01", "|", "0"];
/** Texts whose ids are remembered. */
const KEPT = 2048;

export class Vocabulary {
  /** @param {ArrayBuffer} buffer the asset; throws a TabError `asset` */
  constructor(buffer) {
    const { keys, arrays } = readArrays(buffer, KIND);
    this.fingerprint = keys.tokenizer;
    this.scheme = keys.scheme;
    this.name = keys.name;
    this.attributes = arrays.attributes;
    this.begin = [...arrays.begin];
    this.eog = new Set(arrays.eog);
    this.size = this.attributes.length;
    /** Return the bytes of an id; a view. */
    this.piece = strings(arrays.pieces, arrays.piece_ends);
  }

  /** Whether an id is a control token, which data never makes. */
  isControl(id) {
    return (this.attributes[id] & CONTROL) !== 0;
  }

  /** Whether an id ends what a model writes. */
  ends(id) {
    return this.eog.has(id);
  }

  /** Whether an id is text that an opcode may hold. */
  isText(id) {
    return (this.attributes[id] & (CONTROL | UNUSED | UNKNOWN)) === 0 && this.piece(id).length > 0;
  }

  /**
   * Throw a TabError `vocabulary` unless a model has exactly these pieces.
   * @param {Uint8Array[]} pieces of the model
   * @param {string} scheme how its tokenizer splits and merges
   */
  compare(pieces, scheme) {
    const told = `The model has another vocabulary than ${short(this.name)}`;
    const help = "take the model that this page was made for, or start the server with the model that you have.";
    if (pieces.length !== this.size) throw new TabError("vocabulary", `${told}: ${pieces.length} tokens, not ${this.size}; ${help}`);
    if (scheme !== this.scheme) throw new TabError("vocabulary", `${told}: it is split as ${short(scheme)}, not ${short(this.scheme)}; ${help}`);
    for (let id = 0; id < this.size; id++) {
      if (!equal(pieces[id], this.piece(id))) throw new TabError("vocabulary", `${told}: token ${id} differs; ${help}`);
    }
  }
}

export class Tokenizer {
  /**
   * @param {Vocabulary} vocabulary
   * @param {(text: string, special: boolean) => Promise<number[]>} tokenize of the runtime
   */
  constructor(vocabulary, tokenize) {
    this.vocabulary = vocabulary;
    this.known = new Map();
    this.ask = tokenize;
  }

  /** Return the ids of data: no id in front, no invented space, markers of control tokens stay ordinary text. */
  async plain(text) {
    if (!text) return [];
    const data = new TextEncoder().encode(text);
    const ids = await this.tokenize(text, false);
    if (this.exact(ids, data)) return ids;
    for (const sentinel of SENTINELS) {
      const head = await this.tokenize(sentinel, false);
      const both = await this.tokenize(sentinel + text, false);
      const rest = both.slice(head.length);
      if (head.every((id, at) => both[at] === id) && this.exact(rest, data)) return rest;
    }
    return null;
  }

  /**
   * Return the ids of the pieces of a prompt. Only trusted ones may yield control ids.
   * @param {{text: string, trusted?: boolean}[]} parts
   * @param {boolean} start whether what the model wants in front of a prompt stands in front
   */
  async prompt(parts, start = true) {
    const runs = [];
    for (const { text, trusted } of parts) {
      if (!text) continue;
      const special = Boolean(trusted) && (await this.hasControl(text));
      const last = runs.at(-1);
      if (last && !special && !last.special) last.text += text;
      else runs.push({ text, special });
    }
    const ids = [];
    for (const [at, { text, special }] of runs.entries()) {
      if (at === 0 && start) ids.push(...this.vocabulary.begin, ...(await this.tokenize(text, special)));
      else if (special) ids.push(...(await this.tokenize(text, true)));
      else ids.push(...((await this.plain(text)) ?? (await this.tokenize(text, false))));
    }
    return ids;
  }

  async hasControl(text) {
    return (await this.tokenize(text, true)).some((id) => this.vocabulary.isControl(id));
  }

  async tokenize(text, special) {
    const key = `${special ? 1 : 0}${text}`;
    const known = this.known.get(key);
    if (known) return known;
    if (!text.isWellFormed()) throw new TabError("usage", `${short(text)} holds half of a surrogate pair, which is no text; leave it out.`);
    const ids = await this.ask(text, special);
    if (this.known.size >= KEPT) this.known.clear();
    this.known.set(key, ids);
    return ids;
  }

  exact(ids, data) {
    let at = 0;
    for (const id of ids) {
      const piece = this.vocabulary.piece(id);
      if (!this.vocabulary.isText(id) || !equal(piece, data.subarray(at, at + piece.length))) return false;
      at += piece.length;
    }
    return at === data.length;
  }
}

function equal(a, b) {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}
