// Hears of new decisions while a session grows. One EventSource a tab, closed while the tab is hidden: it holds one of the six
// connections that a browser keeps to a server. Where other tabs hold four already, this one asks every second instead.

import { get, sessionPath } from "./api.js";
import { exported } from "./exported.js";
import { tab } from "./tabsource.js";

const RETRY_MS = [500, 1000, 2000, 5000];
const POLL_MS = 1000;
const TAB_POLL_MS = 150;
const PLACES = 4;

export class LiveFeed {
  constructor(session, fail) {
    Object.assign(this, { session, fail, tries: 0, stop: null });
    this.visible = () => (document.hidden ? this.pause() : this.open());
    document.addEventListener("visibilitychange", this.visible);
    session.addEventListener("info", () => session.grows || this.pause(), { signal: session.signal });
    this.open();
  }

  close() {
    document.removeEventListener("visibilitychange", this.visible);
    this.pause();
    this.closed = true;
  }

  pause() {
    clearTimeout(this.timer);
    this.stop?.abort();
    this.stop = null;
  }

  async open() {
    if (exported || this.closed || this.stop || document.hidden || !this.session.grows) return;
    const stop = (this.stop = new AbortController());
    if (!tab && (await heldPlace(stop.signal))) this.listen(stop.signal);
    else this.poll(stop.signal);
  }

  listen(signal) {
    if (signal.aborted) return;
    const { session } = this;
    const source = new EventSource(sessionPath(session.name, `/events?after=${session.count}`));
    signal.addEventListener("abort", () => source.close());
    source.addEventListener("open", () => { this.tries = 0; });
    source.addEventListener("decisions", (event) => session.take(JSON.parse(event.data)));
    source.addEventListener("state", (event) => this.heardState(JSON.parse(event.data)));
    source.addEventListener("reset", () => session.startAnew().catch(() => {}));
    // The browser would try again by itself, but from the last id that it heard; we know how much is here.
    source.addEventListener("error", () => this.tryAgain());
  }

  async poll(signal) {
    const { session } = this;
    while (!signal.aborted) {
      try {
        const told = await get(sessionPath(session.name, `/changes?after=${session.count}`), signal);
        if (told.count) session.take(told);
        if (told.state) this.heardState(told.state);
      } catch (error) {
        if (error.name !== "AbortError") this.tryAgain();
        return;
      }
      await new Promise((done) => setTimeout(done, tab ? TAB_POLL_MS : POLL_MS));
    }
  }

  heardState(state) {
    if (state.generation !== undefined && state.generation !== this.session.columns.generation) {
      this.session.startAnew().catch(() => {});
    }
    this.session.takeState(state);
  }

  tryAgain() {
    this.pause();
    if (this.closed) return;
    const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
    this.timer = setTimeout(() => this.again(), wait);
  }

  async again() {
    try {
      await this.session.refresh();
      await this.session.catchUp();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 404) return this.fail(error); // the server was started anew, without this session
      return this.tryAgain();
    }
    return this.open();
  }
}

/** Hold one of the places for streams that all tabs share, until the signal; returns whether there was one. */
async function heldPlace(signal) {
  if (!navigator.locks) return true;
  for (let place = 0; place < PLACES; place++) {
    const held = await new Promise((tell) => {
      navigator.locks.request(`inspector-stream-${place}`, { ifAvailable: true }, (lock) => {
        tell(lock !== null);
        return lock && new Promise((free) => (signal.aborted ? free() : signal.addEventListener("abort", free)));
      });
    });
    if (held) return true;
  }
  return false;
}
