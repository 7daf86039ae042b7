// The worker of a tab: Python in Pyodide on one side, the model in wllama on the other. The page asks, Python answers, and where
// Python has to choose it asks the model. Nothing here blocks the page.

import { TabKernel } from "./kernel.js";
import { keepLines, keptLogs } from "./kept.js";

// The page's policy holds here as well. Libraries begin workers of their own from blobs, and nothing from elsewhere.
globalThis.trustedTypes?.createPolicy("default", {
  createScriptURL: (url) => {
    if (url.startsWith("blob:") || new URL(url, origin()).origin === origin()) return url;
    throw new TypeError(`a script of another origin: ${url}`);
  },
});

const state = { python: null, kernel: null, opcodes: {}, program: null, lines: new Map() };
const begun = Date.now();

function origin() {
  return self.location.origin === "null" ? "" : self.location.origin;
}

class Fault extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

self.addEventListener("message", async ({ data: { id, ...asked } }) => {
  try {
    const value = await ACTS[asked.kind]({ id, ...asked });
    self.postMessage({ id, value });
  } catch (error) {
    self.postMessage({ id, fault: { code: error.code ?? "failed", message: inWords(error) } });
  }
});

const ACTS = {
  load: ({ config, base, file }) => load(config, base, file),
  ask: async ({ method, path, body }) => {
    const answer = await state.program.answer(method, path, body);
    const [status, said] = answer.toJs();
    answer.destroy();
    return { status, body: said };
  },
  lines: async ({ path, body, id }) => {
    const answer = await state.program.lines(path, body, (line) => self.postMessage({ id, line }));
    const [status, said] = answer.toJs();
    answer.destroy();
    return { status, body: said };
  },
  halt: async () => state.program?.bench.stop(null),
  log: async ({ name }) => {
    const bytes = state.program.log(name);
    const copy = bytes.toJs();
    bytes.destroy();
    return copy;
  },
};

function inWords(error) {
  if (error instanceof RangeError || /out of memory|memory access|allocat/i.test(error.message)) {
    return `There is not enough memory in this tab (${error.message}). Close other tabs, or pick a smaller model.`;
  }
  return error.message || String(error);
}

function tell(stage, done = 0, total = 0) {
  self.postMessage({ kind: "progress", stage, done, total });
}

/** Load everything, Python and the model side by side. Where the model fails, Python stays for the next one. */
async function load(config, base, file) {
  const seconds = clock();
  state.python ??= loadPython(config, base).then((python) => ({ python, seconds: seconds() }));
  state.python.catch(() => (state.python = null));
  const kernel = await loadModel(config, base, file);
  const model = seconds();
  state.kernel = kernel;
  const { python, seconds: forPython } = await state.python;
  for (const [name, place] of Object.entries(config.opcodes)) state.opcodes[name] = kernel.opcodes(await bytesOf(base + place));
  tell("cartridges");
  const module = python.pyimport("dispatch.tab.program");
  state.program = module.begin(bridge(config, file), JSON.stringify(config.makers), JSON.stringify(config.versions), JSON.stringify(config.presets));
  for (const { session, text } of await keptLogs().catch(() => [])) takeKept(session, text);
  return { python: forPython, model, all: seconds() };
}

/** Return what tells the seconds since now. */
function clock() {
  const from = performance.now();
  return () => (performance.now() - from) / 1000;
}

function takeKept(session, text) {
  try {
    state.program.take(`kept: ${session}`, text);
  } catch {
    // it is no log that this version reads; the page offers it to be saved all the same
  }
}

async function loadModel(config, base, file) {
  if (!file && !config.model.place) throw new Fault("model", "No model lies beside this page. Pick a GGUF file of yours.");
  return TabKernel.load({
    model: file ?? base + config.model.place,
    vocabulary: await bytesOf(base + config.vocabulary),
    wllama: { module: base + config.wllama.module, wasm: base + config.wllama.wasm },
    context: config.context,
    onProgress: (what, done, total) => tell(what, done, total),
  });
}

async function loadPython({ python }, base) {
  tell("python");
  const place = base + python.place;
  const { loadPyodide } = await import(`${place}pyodide.mjs`);
  const found = await loadPyodide({ indexURL: place });
  const packages = await Promise.all(python.wheels.map((name) => bytesOf(place + name)));
  for (const bytes of packages) found.unpackArchive(bytes, "wheel");
  found.unpackArchive(await bytesOf(place + python.program), "zip", { extractDir: "/lib/program" });
  found.runPython("import sys; sys.path.insert(0, '/lib/program')");
  return found;
}

async function bytesOf(place) {
  let answer;
  try {
    answer = await fetch(place, { credentials: "same-origin" });
  } catch {
    throw new Fault("files", `${nameOf(place)} cannot be loaded: the server does not answer. Start it again, then load again.`);
  }
  if (!answer.ok) throw new Fault("files", `${nameOf(place)} is not beside this page (${answer.status}). Make the folder anew: python -m kernel bundle OUT.`);
  return answer.arrayBuffer();
}

const nameOf = (place) => place.split("/").at(-1);

/** What Python asks of the kernel; only texts go across (dispatch/tab/bridge.py). */
function bridge(config, file) {
  return {
    about: () => JSON.stringify({ model: file?.name ?? config.model.name, fingerprint: state.kernel.fingerprint, tokens: state.kernel.size }),
    texts: (name) => JSON.stringify(Array.from({ length: state.opcodes[name].size }, (_, i) => state.opcodes[name].text(i))),
    piece: (token) => Array.from(state.kernel.piece(token), (byte) => byte.toString(16).padStart(2, "0")).join(""),
    control: (token) => Boolean(state.kernel.isControl(token)),
    keep: (session, text) => {
      const n = (state.lines.get(session) ?? 0) + 1;
      state.lines.set(session, n);
      keepLines(`${new Date(begun).toISOString().slice(0, 19)} ${session}`, n, text).catch(() => {});
    },
    ids: async (prompt) => JSON.stringify(await state.kernel.ids(JSON.parse(prompt)), plain),
    write: async (wanted, told) => JSON.stringify(await write(JSON.parse(wanted), (step) => told(JSON.stringify(step, plain)))),
    stop: () => state.kernel.stop(),
    decide: async (question) => JSON.stringify(await decide(JSON.parse(question)), plain),
  };
}

async function decide({ cartridge, prompt, legal, rule }) {
  return state.kernel.decide({
    prompt: await state.kernel.ids(prompt), opcodes: state.opcodes[cartridge], legal, rule: { name: rule, calibration: 1, planner_weight: 0 }, prior: null, ledger: true,
  });
}

function write({ cartridge, prompt, max_tokens: maxTokens }, told) {
  return state.kernel.write({ prompt, maxTokens, opcodes: state.opcodes[cartridge] }, told);
}

/** Write what JSON has not: numbers that are not finite as texts, typed arrays as lists. */
function plain(key, value) {
  if (typeof value === "number" && !Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  return ArrayBuffer.isView(value) ? Array.from(value) : value;
}
