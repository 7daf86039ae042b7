// The runtime: llama.cpp in WebAssembly, as @wllama/wllama 2.4.0 has it. One thread, one sequence.
//
// Its faults are kept from everybody else here: it never puts the first id in front of a prompt, `getVocab` returns as many
// empty entries as tokens and the pieces behind them, `kvRemove` of all tokens keeps its list of them, it asks `document` for
// an address, which a worker does not have, and its `exit` crashes where loading failed.

import { download } from "./download.js";
import { TabError } from "./errors.js";
import { check } from "./gguf.js";

/** Bytes that the runtime takes beside the model, about. */
const BESIDE = 200 << 20;
/** Bytes at both ends of a model file that name its weights. */
const EDGE = 1 << 20;

export class Engine {
  /** Load a model; see TabKernel.load. */
  static async load({ model, wllama, context, onProgress }) {
    const blob = typeof model === "string" ? await download(model, onProgress) : model;
    await check(blob);
    onProgress("load", 0, blob.size);
    const said = [];
    const hear = (...words) => said.push(words.map(String).join(" "));
    const complain = (...words) => /assert|abort|error|fail/i.test(words.join(" ")) && hear(...words);
    const logger = { debug() {}, log: complain, warn() {}, error: hear };
    let runtime = null;
    try {
      const { Wllama } = await import(absolute(wllama.module));
      runtime = new Wllama({ "single-thread/wllama.wasm": absolute(wllama.wasm) }, { logger });
      await withDocument(() => runtime.loadModel([blob], { n_ctx: context, n_threads: 1, n_batch: 512, flash_attn: false }));
    } catch (error) {
      end(runtime);
      throw failure(error, said, blob.size);
    }
    onProgress("load", blob.size, blob.size);
    return new Engine(runtime, await weightsOf(blob), said);
  }

  constructor(runtime, weights, said) {
    this.runtime = runtime;
    /** What llama.cpp complained of. */
    this.said = said;
    /** Name of the weights, as kernel/choose/tab_nulls.py makes it; empty where the browser gives no hashes. */
    this.weights = weights;
    const info = runtime.getLoadedContextInfo();
    this.size = info.n_vocab;
    this.context = info.n_ctx;
    const { meta } = runtime.getModelMetadata();
    /** How the tokenizer splits and merges. */
    this.scheme = `${meta["tokenizer.ggml.model"] ?? ""}/${meta["tokenizer.ggml.pre"] ?? ""}`;
  }

  /** Return the bytes of every id. */
  async pieces() {
    return (await this.asked(() => this.runtime.getVocab())).slice(-this.size);
  }

  /** Return the ids of a text, markers of control tokens as such only where they are special. */
  async tokenize(text, special) {
    return text ? [...(await this.asked(() => this.runtime.tokenize(text, special)))] : [];
  }

  /** Evaluate ids behind those that are held; `wanted` is whether the row behind them will be asked for. */
  async decode(ids, wanted) {
    await this.asked(() => this.runtime.decode(ids, { skipLogits: !wanted }));
  }

  /** Return the row behind the last id: {token, p}, the most probable first. */
  row() {
    return this.asked(() => this.runtime.getLogits(-1));
  }

  /** Drop what stands behind a length above 0; returns false where the model's memory cannot. */
  async cut(length) {
    try {
      await this.runtime.kvRemove(length, -1);
      return true;
    } catch {
      return false; // a memory of states, or a window that has moved on
    }
  }

  /** Forget all ids. */
  async clear() {
    await this.asked(() => this.runtime.kvClear());
  }

  /** Free the model. */
  close() {
    end(this.runtime);
  }

  async asked(call) {
    this.said.length = 0;
    try {
      return await call();
    } catch (error) {
      throw failure(error, this.said, 0);
    }
  }
}

async function weightsOf(blob) {
  if (!globalThis.crypto?.subtle) return ""; // it is there on https and on this machine only
  const ends = [new Blob([String(blob.size)]), blob.slice(0, EDGE), blob.slice(Math.max(0, blob.size - EDGE))];
  const digest = await crypto.subtle.digest("SHA-256", await new Blob(ends).arrayBuffer());
  return `sha256:${Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Return what the runtime's failure means. */
function failure(error, said, size) {
  if (error instanceof TabError) return error;
  const own = String(error?.message ?? error);
  const told = [own, ...said].join(" ");
  const line = (said.length ? said.join(" ") : own).replace(/\s+/g, " ").slice(0, 200);
  if (/memory|alloc|OOM|enlarge|maximum size/i.test(told)) {
    const needed = size ? `, and this model needs about ${Math.ceil((size + BESIDE) / 1e6)} MB` : "";
    return new TabError("memory", `The tab got no more memory${needed}: close other tabs, or take a smaller model or context (${line}).`, error);
  }
  if (!/loading model|llama_model_load/i.test(told) && /WebAssembly|wasm|SIMD|exception handling/i.test(told)) {
    return new TabError("wasm", `This browser cannot run the model: take a current Chromium, Chrome, Edge or Firefox (${line}).`, error);
  }
  return new TabError(size ? "model" : "runtime", size ? `The runtime cannot load this model; take another one (${line}).` : `The runtime in the tab failed; load the model again (${line}).`, error);
}

async function withDocument(call) {
  if (typeof document !== "undefined") return call();
  globalThis.document = { baseURI: location.href };
  try {
    return await call();
  } finally {
    delete globalThis.document;
  }
}

function absolute(address) {
  const base = typeof document === "undefined" ? location.href : document.baseURI;
  return new URL(address, base).href;
}

/** End the runtime's worker; its own way to exit crashes where loading failed, and leaves the worker behind. */
function end(runtime) {
  runtime?.proxy?.worker?.terminate();
}
