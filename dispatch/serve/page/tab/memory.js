// What the one sequence of the runtime holds, as ids, and the row behind any ids with as few tokens evaluated as possible.

import { TabError } from "./errors.js";
import { Row } from "./rows.js";

/** Tokens of one call of the runtime, so that a long prompt can be stopped and tells how far it is. */
const BATCH = 64;

export class Memory {
  /**
   * @param {object} engine with `decode(ids, wanted)`, `cut(length)`, `clear()`, `row()`, `size`, `context`
   * @param {(done: number, total: number) => void} onTokens told while a prompt is evaluated
   */
  constructor(engine, onTokens = () => {}) {
    this.engine = engine;
    this.onTokens = onTokens;
    this.held = [];
    this.last = null;
    this.stopped = false;
    this.cost = { decodes: 0, tokens: 0, kept: 0, rows: 0, refused: 0 };
  }

  /**
   * Return the row behind ids. What is equal to the beginning of what is held is not evaluated again.
   * @param {number[]} ids one or more
   * Throws a TabError: `context`, `stopped`, `row`, `runtime`. What is held afterwards is known in any case.
   */
  async row(ids) {
    if (ids.length > this.engine.context) {
      throw new TabError("context", `The prompt needs ${ids.length} tokens and the model's memory holds ${this.engine.context}; shorten the request, or load the model with a larger context.`);
    }
    let kept = this.common(ids);
    if (kept === ids.length && kept === this.held.length && this.last) return this.last;
    kept = Math.min(kept, ids.length - 1); // the last id is evaluated anew: its row was not kept
    this.last = null;
    try {
      kept = await this.cut(kept);
      for (let from = kept; from < ids.length; from += BATCH) {
        this.halt();
        const part = ids.slice(from, from + BATCH);
        await this.engine.decode(part, from + BATCH >= ids.length);
        this.held.push(...part);
        this.cost.decodes += 1;
        this.cost.tokens += part.length;
        this.onTokens(from + part.length, ids.length);
      }
      this.halt();
      this.cost.kept += kept;
      this.cost.rows += 1;
      this.last = new Row(await this.engine.row(), this.engine.size);
      return this.last;
    } catch (error) {
      if (error.code !== "stopped" && error.code !== "row") await this.forget();
      throw error;
    }
  }

  /** End the decision that is being made before its next pass. */
  stop() {
    this.stopped = true;
  }

  halt() {
    if (this.stopped) throw new TabError("stopped", "The decision was stopped.");
  }

  common(ids) {
    let at = 0;
    while (at < ids.length && at < this.held.length && ids[at] === this.held[at]) at++;
    return at;
  }

  /** Drop what stands behind a length; returns what is held then, which is nothing where the runtime cannot drop a part. */
  async cut(length) {
    if (length === this.held.length) return length;
    if (length > 0 && (await this.engine.cut(length))) {
      this.held.length = length;
      return length;
    }
    this.cost.refused += length > 0 ? 1 : 0;
    await this.engine.clear();
    this.held = [];
    return 0;
  }

  async forget() {
    this.held = [];
    this.last = null;
    try {
      await this.engine.clear();
    } catch {
      // the runtime is gone; what comes next says so
    }
  }
}
