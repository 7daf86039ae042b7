// The model alone: it writes on behind a prompt, the most probable token each time, and nothing is removed. For the bench,
// where it stands beside what the mask makes of it.

import { TabError } from "./errors.js";
import { ledgerStep } from "./rows.js";

/**
 * @param {Memory} memory
 * @param {Vocabulary} vocabulary
 * @param {{prompt: number[], maxTokens: number, allowed: (ids: number[]) => ?number[]}} what allowed: the ids that a mask
 *   would have let through behind what was written; null where there is none
 * @param {(step: {at: number, id: number, left: boolean, step: object}) => void} onStep told of each token; left: a mask
 *   would have removed it; step: its ledger
 * @returns {Promise<{ids: number[], closed: boolean}>} closed: the tokens were used up before the model came to an end
 */
export async function written(memory, vocabulary, { prompt, maxTokens, allowed = () => null }, onStep) {
  if (!prompt.length) throw new TabError("usage", "The prompt has no tokens; a model needs something to read.");
  const ids = [];
  while (ids.length < maxTokens) {
    const row = await memory.row([...prompt, ...ids]);
    const [id] = row.strongest(1);
    if (vocabulary.ends(id)) return { ids, closed: false };
    const legal = allowed(ids);
    onStep({ at: ids.length, id, left: legal !== null && !legal.includes(id), step: ledgerStep(ids.length, row, legal ?? [], id) });
    ids.push(id);
  }
  return { ids, closed: true };
}
