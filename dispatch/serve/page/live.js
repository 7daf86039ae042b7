// One EventSource for a session that grows. It is closed while the tab is hidden, since it holds one of the few connections
// that a browser keeps to a server; coming back, it asks for what it missed.

import { sessionPath } from "./api.js";

const RETRY_MS = [500, 1000, 2000, 5000];

export class LiveFeed {
  constructor(session) {
    this.session = session;
    this.source = null;
    this.tries = 0;
    this.visible = () => (document.hidden ? this.pause() : this.open());
    document.addEventListener("visibilitychange", this.visible);
    this.open();
  }

  close() {
    document.removeEventListener("visibilitychange", this.visible);
    this.pause();
    this.closed = true;
  }

  pause() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  open() {
    if (this.closed || this.source || document.hidden || !this.session.grows) return;
    const { session } = this;
    const source = new EventSource(sessionPath(session.name, `/events?after=${session.count}`));
    this.source = source;
    source.addEventListener("open", () => { this.tries = 0; });
    source.addEventListener("decisions", (event) => session.take(JSON.parse(event.data)));
    source.addEventListener("state", (event) => {
      session.takeState(JSON.parse(event.data));
      if (!session.grows) this.pause();
    });
    source.addEventListener("reset", () => session.startAnew().catch(() => {}));
    // The browser would try again by itself, but from the last id that it heard; we know how much is here.
    source.addEventListener("error", () => {
      this.pause();
      const wait = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
      this.timer = setTimeout(() => this.again(), wait);
    });
  }

  async again() {
    try {
      await this.session.refresh();
      await this.session.catchUp();
    } catch {
      // the banner says that the server is gone
    }
    this.open();
  }
}
