// Fetches a model: in pieces where the server gives ranges, so that a connection that breaks costs one piece; whole elsewhere.

import { TabError, short } from "./errors.js";

const PIECE = 8 << 20;
const TRIES = 3;

/**
 * Return what lies at an address.
 * @param {string} address
 * @param {(what: string, done: number, total: number) => void} onProgress told of `model`
 * @returns {Promise<Blob>}
 * Throws a TabError: `model` where it is not to be had, `cut` where it ends early.
 */
export async function download(address, onProgress) {
  const first = await range(address, 0);
  if (first.status === 200) return whole(first, onProgress);
  const total = Number(/\/(\d+)$/.exec(first.headers.get("content-range") ?? "")?.[1]);
  if (!(total > 0)) throw new TabError("model", `${short(address)} gives parts of the model without saying how long it is; load the page from another server.`);
  const parts = [await first.blob()];
  let done = parts[0].size;
  onProgress("model", done, total);
  while (done < total) {
    const part = await piece(address, done);
    if (!part.size) break;
    parts.push(part);
    done += part.size;
    onProgress("model", done, total);
  }
  if (done !== total) throw new TabError("cut", `The model came to an end after ${done} of ${total} bytes; try again.`);
  return new Blob(parts);
}

async function piece(address, begin) {
  for (let left = TRIES; ; left--) {
    try {
      return await (await range(address, begin)).blob();
    } catch (error) {
      if (left <= 1) throw error instanceof TabError ? error : new TabError("model", `The connection broke off after ${begin} bytes of the model; see that the server runs, and try again.`, error);
    }
  }
}

async function range(address, begin) {
  let answer;
  try {
    answer = await fetch(address, { headers: { range: `bytes=${begin}-${begin + PIECE - 1}` } });
  } catch (error) {
    throw new TabError("model", `The model at ${short(address)} cannot be reached; see that the server runs, and try again.`, error);
  }
  if (answer.status === 206 || (answer.status === 200 && begin === 0)) return answer;
  throw new TabError("model", `The server answers ${answer.status} for the model at ${short(address)}; pick the model's file instead, or start the server with a model that is here.`);
}

async function whole(answer, onProgress) {
  const total = Number(answer.headers.get("content-encoding") ? 0 : answer.headers.get("content-length"));
  const parts = [];
  let done = 0;
  try {
    for (let reader = answer.body.getReader(), step = await reader.read(); !step.done; step = await reader.read()) {
      parts.push(step.value);
      done += step.value.length;
      onProgress("model", done, Math.max(total, done));
    }
  } catch (error) {
    throw new TabError("model", `The connection broke off after ${done} bytes of the model; see that the server runs, and try again.`, error);
  }
  if (total && done !== total) throw new TabError("cut", `The model came to an end after ${done} of ${total} bytes; try again.`);
  return new Blob(parts);
}
