// Talks to the source of what is shown (the server, the file itself, a worker of this tab): one place for requests, typed
// errors, and numbers that JSON cannot hold.

import { answerOf, exported } from "./exported.js";
import { tab } from "./tabsource.js";

/** An answer of 400 or more: what the server says is wrong, and of which field. */
export class ApiError extends Error {
  constructor(status, { message, type, field, param }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.field = field ?? param ?? null;
  }
}

/** Nobody answers: the server has ended, or the connection is gone. */
export class GoneError extends Error {
  constructor() {
    super("The server does not answer.");
    this.name = "GoneError";
  }
}

/** Tells whoever listens whether the server answers: events `gone` and `back`. */
export const connection = new EventTarget();
let gone = false;

function heard(answers) {
  if (gone === !answers) return;
  gone = !answers;
  connection.dispatchEvent(new Event(gone ? "gone" : "back"));
}

const token = () => document.querySelector('meta[name="kernel-token"]')?.content ?? "";

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    heard(false);
    throw new GoneError();
  }
  heard(true);
  if (answer.ok) return answer;
  let told = null;
  try {
    told = (await answer.json()).error;
  } catch {
    // not ours, or no JSON: the status is all that is known
  }
  throw new ApiError(answer.status, told ?? { message: `The server answered ${answer.status}.`, type: "failed" });
}

/** Take up the token of a server that was started anew; without it nothing that acts is heard. */
export async function renewToken() {
  const text = await (await request("/")).text();
  const found = text.match(/<meta name="kernel-token" content="([\w-]*)">/);
  if (found) document.querySelector('meta[name="kernel-token"]').content = found[1];
}

function fromFile(path) {
  const answer = answerOf(path);
  if (answer === undefined) throw new ApiError(404, { message: "That is not in this file.", type: "not_found" });
  return answer;
}

async function inTab(method, path, body, signal) {
  return unlessRefused(await tab.ask(method, path, body, signal));
}

async function linesInTab(path, body, take, signal) {
  unlessRefused(await tab.lines(path, body, (line) => take(JSON.parse(line)), signal));
}

function unlessRefused({ status, body }) {
  if (status < 400) return body;
  throw new ApiError(status, JSON.parse(body).error);
}

/** GET a JSON document. */
export async function get(path, signal) {
  if (exported) return structuredClone(fromFile(path));
  if (tab) return JSON.parse(await inTab("GET", path, null, signal));
  return (await request(path, { signal })).json();
}

/** GET bytes. */
export async function getBytes(path, signal) {
  if (exported) return fromFile(path);
  if (tab) return bufferOf(await inTab("GET", path, null, signal));
  return (await request(path, { signal })).arrayBuffer();
}

const bufferOf = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);

/** POST an object with the token of this run; returns the answer's JSON. */
export async function post(path, body, signal) {
  if (tab) return JSON.parse(await inTab("POST", path, body ?? {}, signal));
  return (await send(path, body, signal)).json();
}

async function send(path, body, signal) {
  if (exported) throw new ApiError(409, { message: "This is a file; nothing can be decided in it.", type: "conflict" });
  const headers = { "Content-Type": "application/json", "X-Kernel-Token": token() };
  return request(path, { method: "POST", headers, body: JSON.stringify(body ?? {}), signal });
}

/** POST an object and call `take` with every line of the answer, a JSON document each. */
export async function postLines(path, body, take, signal) {
  if (tab) return linesInTab(path, body, take, signal);
  const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      heard(false);
      throw new GoneError();
    }
    const lines = (rest + (part.value ?? "")).split("\n");
    rest = part.done ? "" : lines.pop();
    for (const line of lines) if (line.trim()) take(JSON.parse(line));
    if (part.done) return;
  }
}

/** Return the path of a session's resource; its name is percent-encoded. */
export function sessionPath(name, rest = "") {
  return `/api/s/${encodeURIComponent(name)}${rest}`;
}

const NOT_FINITE = { inf: Infinity, "-inf": -Infinity, nan: NaN };

/** Return a number as the interface tells it: `"inf"`, `"-inf"` and `"nan"` are numbers; null stays null. */
export function number(value) {
  return typeof value === "string" ? NOT_FINITE[value] ?? NaN : value ?? null;
}

/** Return the query of a list, without the filters that are not set. */
export function query(filters) {
  const given = Object.entries(filters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
