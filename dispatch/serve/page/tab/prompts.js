// Prompts of a decision as the tab reads them: one sequence holds no lines side by side, so a set becomes a list.

import { TabError } from "./errors.js";

/**
 * Return the ids of a prompt, its null prompts and its rotations.
 * @param {Tokenizer} tokenizer
 * @param {{parts: Piece[], nulls?: Piece[][], rotations?: Piece[][]}} prompt a piece is {text, trusted} or {texts, trusted}
 * @returns {Promise<{main: Prompted, nulls: Prompted[], rotations: Prompted[]}>} each a list of ids, or {lead, lines, question}
 */
export async function idsOf(tokenizer, { parts, nulls = [], rotations = [] }) {
  const all = [];
  for (const each of [parts, ...nulls, ...rotations]) all.push(await prompted(tokenizer, each));
  return { main: all[0], nulls: all.slice(1, 1 + nulls.length), rotations: all.slice(1 + nulls.length) };
}

async function prompted(tokenizer, parts) {
  const at = parts.findIndex(({ texts }) => texts);
  if (at < 0) return tokenizer.prompt(parts);
  const [before, behind] = [parts.slice(0, at), parts.slice(at + 1)];
  if (behind.some(({ texts }) => texts)) throw new TabError("usage", "A prompt has lines without an order twice; once, between a lead and a question.");
  if (![before, behind].every((some) => some.some(({ text }) => text))) throw new TabError("usage", "A prompt needs a lead before its lines without an order, and a question behind them.");
  const lines = [];
  for (const text of parts[at].texts) lines.push(await tokenizer.prompt([{ text, trusted: parts[at].trusted }], false));
  return { lead: await tokenizer.prompt(before), lines, question: await tokenizer.prompt(behind, false) };
}

/**
 * Return the prompts of a decision as lists of ids.
 * @param {{main: Prompted, nulls?: Prompted[], rotations?: Prompted[]}} prompt
 * @param {boolean} rotated whether a set is read in every rotated order, or in one, the order of its lines' ids
 */
export function asRead({ main, nulls = [], rotations = [] }, rotated) {
  const [first, ...others] = orders(main, rotated);
  const read = {
    main: first,
    nulls: nulls.flatMap((each) => orders(each, rotated)),
    rotations: [...others, ...rotations.flatMap((each) => orders(each, rotated))],
  };
  if (![read.main, ...read.nulls, ...read.rotations].every((ids) => ids.length)) throw new TabError("usage", "A prompt has no tokens; a model needs something to read.");
  return read;
}

function orders(prompt, rotated) {
  if (!prompt.question) return [[...prompt]];
  const lines = unique(prompt.lines.map((line) => [...line]).filter((line) => line.length));
  const turns = rotated && lines.length ? lines.length : 1;
  return Array.from({ length: turns }, (_, at) => [...prompt.lead, ...lines.slice(at), ...lines.slice(0, at)].flat().concat([...prompt.question]));
}

/** Return lines in the order of their ids, each once. */
function unique(lines) {
  lines.sort(compare);
  return lines.filter((line, at) => at === 0 || compare(lines[at - 1], line) !== 0);
}

function compare(a, b) {
  for (let at = 0; at < a.length && at < b.length; at++) if (a[at] !== b[at]) return a[at] - b[at];
  return a.length - b.length;
}
