// The kernel in the tab: a model in WebAssembly, compiled opcodes, and the rules greedy, exact and calibrated. Nothing is
// sent anywhere, and nothing is loaded before `load` is called.

import { Chooser } from "./chooser.js";
import { Engine } from "./engine.js";
import { Memory } from "./memory.js";
import { Opcodes } from "./opcodes.js";
import { idsOf } from "./prompts.js";
import { Tokenizer, Vocabulary } from "./vocabulary.js";
import { written } from "./writer.js";

export class TabKernel {
  /**
   * Load a model.
   * @param {object} what
   * @param {Blob|string} what.model a GGUF file, or the address of one
   * @param {ArrayBuffer} what.vocabulary the asset that the opcodes were compiled with
   * @param {{module: string, wasm: string}} what.wllama addresses of the runtime's two files
   * @param {number} [what.context] tokens that a prompt may have
   * @param {(what: string, done: number, total: number) => void} [what.onProgress] told of `model`, `load`, `check`, `read`
   * @returns {Promise<TabKernel>}
   * Throws a TabError; see errors.js.
   */
  static async load({ model, vocabulary, wllama, context = 2048, onProgress = () => {} }) {
    const words = new Vocabulary(vocabulary);
    const engine = await Engine.load({ model, wllama, context, onProgress });
    try {
      onProgress("check", 0, 1);
      words.compare(await engine.pieces(), engine.scheme);
      onProgress("check", 1, 1);
      return new TabKernel(engine, words, onProgress);
    } catch (error) {
      engine.close();
      throw error;
    }
  }

  /** Take a runtime that has this vocabulary; what `load` ends with. */
  constructor(engine, vocabulary, onProgress = () => {}) {
    this.engine = engine;
    this.vocabulary = vocabulary;
    this.fingerprint = vocabulary.fingerprint;
    this.tokenizer = new Tokenizer(vocabulary, (text, special) => engine.tokenize(text, special));
    this.memory = new Memory(engine, (done, total) => onProgress("read", done, total));
    this.chooser = new Chooser(this.memory);
    this.last = Promise.resolve();
  }

  /** How many ids the vocabulary has. */
  get size() {
    return this.vocabulary.size;
  }

  /** Return the bytes of an id; a view. */
  piece(id) {
    return this.vocabulary.piece(id);
  }

  /** Whether an id is a control token. */
  isControl(id) {
    return this.vocabulary.isControl(id);
  }

  /** Return compiled opcodes; throws a TabError for another vocabulary, and for bytes that are none. */
  opcodes(buffer) {
    return new Opcodes(buffer, this.fingerprint);
  }

  /** Take what null prompts said of opcodes, read elsewhere with this model; see nulls.js. */
  takeNulls(opcodes, buffer) {
    this.chooser.nulls.take(opcodes, buffer, this.engine.weights);
  }

  /** Return the ids of a prompt, {parts, nulls, rotations} of pieces; see prompts.js. */
  ids(prompt) {
    return idsOf(this.tokenizer, prompt);
  }

  /**
   * Choose one legal opcode.
   * @param {object} question
   * @param {{main, nulls, rotations}} question.prompt as `ids` returns it
   * @param {Opcodes} question.opcodes
   * @param {?number[]} [question.legal] opcodes that are legal now; null is all of them
   * @param {?{name: string, calibration: number, planner_weight: number}} [question.rule] null is `calibrated` with null
   *   prompts and `exact` without
   * @param {?Float64Array} [question.prior] the planner's scores by opcode, NaN where it has none
   * @param {boolean} [question.ledger] whether to tell the strongest ids of each choosing step
   * @param {boolean} [question.rotated] whether a set is read in every rotated order, in place of one
   * @returns {Promise<object>} index, text, label, ids of the opcode; leaves, scores, raw, null, shares: one an opcode that
   *   is legal, in the order of ids, NaN where it was not evaluated; margin, mass; chosen and forced: how many of the ids were
   *   a choice; stop: `complete` or `forced`; decodes, tokens, kept, rows, refused: what it cost; ms; prompt: as it was
   *   read; ledger: [{at, legal, mass, rows: [{id, logprob, legal, rank}]}]
   * Decisions wait for each other. Throws a TabError; the session is as it was, and the next decision is that of a fresh kernel.
   */
  decide(question) {
    return this.next(() => this.chooser.decide(question));
  }

  /**
   * Let the model write on alone behind a prompt, for comparison; see writer.js.
   * @param {{prompt: number[], maxTokens: number, opcodes: ?Opcodes, legal: ?number[]}} what opcodes: what a mask would hold
   * @param {(step: object) => void} onStep told of each token
   */
  write({ prompt, maxTokens, opcodes = null, legal = null }, onStep) {
    const ranks = opcodes?.legal(legal);
    const allowed = opcodes ? (ids) => opcodes.next(ranks, ids) : undefined;
    return this.next(() => written(this.memory, this.vocabulary, { prompt: [...prompt], maxTokens, allowed }, onStep));
  }

  next(work) {
    const made = this.last.then(() => {
      this.memory.stopped = false;
      return work();
    });
    this.last = made.catch(() => {});
    return made;
  }

  /** End what is being decided or written before its next pass, with a TabError `stopped`. */
  stop() {
    this.memory.stop();
  }

  /** Free the model, when the pass that is being evaluated is done. */
  async close() {
    this.stop();
    await this.last;
    this.engine.close();
  }
}
