// What can go wrong in the tab: one kind of error, with a code for programs and a sentence for people that says what to do.

/**
 * Codes: `model` (no GGUF file, or not to be had), `cut` (a part of it), `wasm` (the browser cannot run it), `memory` (too
 * little of it), `vocabulary` (the model has another one), `asset` (foreign or damaged bytes), `row` (the model's row
 * cannot be trusted), `context` (the prompt is too long), `usage` (the question makes no sense), `stopped`, `runtime`.
 */
export class TabError extends Error {
  constructor(code, message, cause = undefined) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "TabError";
    this.code = code;
  }
}

/** Return a value as much of it as fits into a message. */
export function short(value) {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}
