// A model without weights for the tests of the tab: the row behind ids is a hash of them, which Python computes as well.

import { TabKernel } from "./kernel.js";
import { Vocabulary } from "./vocabulary.js";

const PRIME = 1000003;

class Fake {
  constructor(size) {
    this.size = size;
    this.context = 256;
    this.held = [];
    this.refuses = false;
    this.patch = {};
  }

  async decode(ids) {
    this.held.push(...ids);
  }

  async cut(length) {
    if (!this.refuses) this.held.length = length;
    return !this.refuses;
  }

  async clear() {
    this.held = [];
  }

  async row() {
    let hash = 17;
    for (const id of this.held) hash = (hash * 31 + id + 1) % PRIME;
    const logit = (token) => Math.fround((8 * ((hash * 7919 + token * 104729) % PRIME)) / PRIME);
    const entries = Array.from({ length: this.size }, (_, token) => ({ token, p: this.patch[token] ?? Math.exp(logit(token)) }));
    return entries.sort((a, b) => b.p - a.p);
  }
}

/** Return the bytes of a text in base64. */
export function bytes(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}

/** Return what a call fails with, as code and message; null where it does not. */
export async function failed(call) {
  try {
    await call();
    return null;
  } catch (error) {
    return [error.code, error.message];
  }
}

/** Return a kernel on a fake model of a vocabulary, and opcodes where some are given. */
export function made({ vocabulary, trie }) {
  const words = new Vocabulary(bytes(vocabulary));
  const engine = new Fake(words.size);
  const kernel = new TabKernel(engine, words);
  return { kernel, engine, opcodes: trie && kernel.opcodes(bytes(trie)) };
}
