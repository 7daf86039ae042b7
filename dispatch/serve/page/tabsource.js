// The tab as the source of what the page shows: a worker with Python and the model answers the paths that a server answers.

/** Where everything lies and what it is called, as `serve --tab` and `bundle` write it into the page; null where a server answers. */
const settings = document.querySelector('meta[name="kernel-tab"]')?.content;

/** What the tab cannot do, in a sentence that says what to do instead. */
export class TabFault extends Error {
  constructor({ code, message }) {
    super(message);
    this.name = "TabFault";
    this.code = code;
  }
}

/** Events: `progress` (what is being loaded: `stage`, `done`, `total`), `gone` (the worker has ended). */
class Tab extends EventTarget {
  constructor(config) {
    super();
    Object.assign(this, { config, worker: null, ready: false, waiting: new Map(), number: 0 });
  }

  /**
   * Load Python and the model into a worker of this tab, and return the seconds that each took: `python`, `model`, `all`.
   * @param {?File} file one that the visitor picked; else the one beside the page
   */
  async load(file = null) {
    const missing = lacking();
    if (missing) throw new TabFault({ code: "browser", message: missing });
    this.worker ??= this.begin();
    const seconds = await this.say({ kind: "load", config: this.config, base: new URL("tab/", document.baseURI).href, file });
    this.ready = true;
    return seconds;
  }

  begin() {
    const worker = startWorker(new URL("tab/worker.js", document.baseURI).href);
    worker.addEventListener("message", ({ data }) => this.hear(data));
    worker.addEventListener("error", (event) => this.lose(event.message));
    return worker;
  }

  /** Ask the worker a question of the page's interface; returns `{status, body}`. */
  ask(method, path, body = null, signal = null) {
    return this.say({ kind: "ask", method, path, body: body === null ? "" : JSON.stringify(body) }, signal);
  }

  /** Ask for something that is told line by line; `take` is called with each. */
  async lines(path, body, take, signal = null) {
    signal?.addEventListener("abort", () => this.worker?.postMessage({ kind: "halt" }));
    return this.say({ kind: "lines", path, body: JSON.stringify(body) }, signal, take);
  }

  /** The log of a session, as far as it is written, as bytes. */
  log(name) {
    return this.say({ kind: "log", name });
  }

  say(message, signal = null, take = null) {
    return new Promise((done, fail) => {
      if (!this.worker) return fail(new TabFault({ code: "gone", message: GONE }));
      const id = (this.number += 1);
      this.waiting.set(id, { done, fail, take });
      signal?.addEventListener("abort", () => this.waiting.delete(id) && fail(new DOMException("left", "AbortError")));
      return this.worker.postMessage({ id, ...message });
    });
  }

  hear({ id, kind, value, fault, line, ...more }) {
    if (kind === "progress") return this.dispatchEvent(Object.assign(new Event("progress"), more));
    const waits = this.waiting.get(id);
    if (line !== undefined) return waits?.take(line);
    this.waiting.delete(id);
    return fault ? waits?.fail(new TabFault(fault)) : waits?.done(value);
  }

  /** The worker has ended of itself: the browser has stopped it, most often because memory ran out. */
  lose(why) {
    this.ready = false;
    this.worker?.terminate();
    this.worker = null;
    const fault = new TabFault({ code: "gone", message: why ? `${GONE} (${why})` : GONE });
    for (const { fail } of this.waiting.values()) fail(fault);
    this.waiting.clear();
    this.dispatchEvent(Object.assign(new Event("gone"), { why: fault.message }));
  }
}

const GONE = "What was loaded into this tab has ended. Load it again; the log is kept up to the last decision.";

/** What this browser lacks, as a sentence; null where it has all. */
function lacking() {
  if (typeof WebAssembly !== "object") return "This browser has no WebAssembly, or it is switched off here (some modes for high security do that). Open the page in another one, or play in a terminal: python -m kernel run tetris.";
  if (typeof Worker !== "function" || typeof BigInt64Array !== "function") return "This browser is too old for a model in a tab. Open the page in a current Chromium, Firefox or Safari.";
  return null;
}

let policy = null;

/** Start a worker that is held by this page's policy: one made from a blob has the policy of its maker. */
function startWorker(place) {
  const blob = URL.createObjectURL(new Blob([`import ${JSON.stringify(place)};`], { type: "text/javascript" }));
  policy ??= globalThis.trustedTypes?.createPolicy("kernel-tab", { createScriptURL: (url) => url });
  return new Worker(policy ? policy.createScriptURL(blob) : blob, { type: "module" });
}

export const tab = settings ? new Tab(JSON.parse(settings)) : null;
