// One session as the page knows it: what the server says of it, its columns, where the reader stands, what is pinned.

import { connection, get, getBytes, number, query, sessionPath } from "./api.js";
import { Columns } from "./columns.js";
import { atMostEvery, oncePerFrame } from "./dom.js";

const REMEMBERED = 48;
const ASK_AGAIN_MS = 400;
const FOLLOW_MS = 120;
const COLUMNS_MS = 100;

/**
 * Events: `info` (the summary), `columns` (more decisions, or others), `cursor` (the reader moved), `decision` (the one at
 * the cursor is here, or failed), `pin` (pinned, let go, or its decision is here), `look` (a token is pointed at).
 */
export class Session extends EventTarget {
  constructor(name) {
    super();
    this.name = name;
    this.info = null;
    this.columns = new Columns();
    this.cursor = 0;
    this.following = false;
    this.pinned = null;
    this.looked = null;
    this.asked = null;
    this.decision = null;
    this.fault = null;
    this.known = new Map();
    this.ended = new AbortController();
    this.asking = false;
    connection.addEventListener("back", () => this.fault && this.fetchCursor(), { signal: this.ended.signal });
    this.tell = { columns: atMostEvery(COLUMNS_MS, () => this.say("columns")), cursor: oncePerFrame(() => this.say("cursor")) };
  }

  say(event) {
    if (!this.ended.signal.aborted) this.dispatchEvent(new Event(event));
  }

  /** Stop everything that is under way; the session is not used any more. */
  close() {
    this.ended.abort();
  }

  get signal() {
    return this.ended.signal;
  }

  get count() {
    return this.columns.count;
  }

  /** The state of a live session, or null for a log. */
  get live() {
    return this.info?.live ?? null;
  }

  get grows() {
    return (this.live !== null && this.live.state !== "ended") || this.info?.outcome === null;
  }

  /** Read summary and columns; then keep reading while the server is still reading the file. */
  async open() {
    await this.refresh();
    await this.catchUp();
    this.watchReading();
  }

  async refresh() {
    this.info = await get(sessionPath(this.name), this.signal);
    this.say("info");
  }

  /** Read the columns that are not here yet. */
  async catchUp() {
    const bytes = await getBytes(sessionPath(this.name, `/strip?from=${this.count + 1}`), this.signal);
    if (this.columns.takeBytes(bytes)) return this.tell.columns();
    return this.startAnew();
  }

  /** The file became another one: forget what was remembered of it. */
  async startAnew() {
    this.columns = new Columns();
    this.known.clear();
    this.decision = null;
    await this.refresh();
    this.columns.takeBytes(await getBytes(sessionPath(this.name, "/strip?from=1"), this.signal));
    this.tell.columns();
    if (this.cursor) this.move(Math.min(this.cursor, Math.max(this.count, 1)), { force: true });
  }

  async watchReading() {
    // A log that has its outcome is checked to the end soon, if the last that was heard is older.
    const behind = () => this.info.outcome !== null && this.info.verified.state === "unfinished";
    const unfinished = () => !this.info.complete || this.info.verified.state === "checking" || behind();
    while (unfinished() && !this.signal.aborted) {
      await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
      try {
        await this.refresh();
        if (this.info.decisions > this.count) await this.catchUp();
      } catch (error) {
        if (error.name === "AbortError") return;
      }
    }
  }

  /** Take the data of a `decisions` event. */
  take(data) {
    if (data.names) this.info.names = data.names;
    if (!this.columns.takeEvent(data)) {
      this.catchUp().catch(() => {});
      return;
    }
    this.tell.columns();
    if (this.following) this.move(this.count, { follow: true });
  }

  /** Take the data of a `state` event. */
  takeState({ live, verified, decisions, complete }) {
    const grew = this.grows;
    Object.assign(this.info, { live, verified, decisions, complete });
    this.say("info");
    if (grew && live?.state === "ended") this.refresh().then(() => this.watchReading()).catch(() => {});
  }

  /** Go to decision `n`, inside what there is. A move by hand ends following. */
  move(n, { follow = false, force = false } = {}) {
    const wanted = Math.min(Math.max(1, Math.round(n)), Math.max(this.count, 1));
    if (!follow && this.following) {
      this.following = false;
      this.say("info");
    }
    if (this.count === 0 || (wanted === this.cursor && this.decision?.n === wanted && !force)) return;
    this.cursor = wanted;
    this.tell.cursor();
    this.fetchCursor();
  }

  follow(on) {
    this.following = on;
    if (on && this.count) this.move(this.count, { follow: true });
    this.say("info");
  }

  /** Read the decision at the cursor; one request at a time, the newest wish wins. */
  async fetchCursor() {
    if (this.asking) return;
    this.asking = true;
    try {
      for (let n = 0; n !== this.cursor && !this.signal.aborted;) {
        n = this.cursor;
        try {
          this.decision = await this.read(n);
          this.fault = null;
        } catch (error) {
          if (error.name === "AbortError") return;
          this.decision = null;
          this.fault = error;
        }
        this.say("decision");
        // A session that runs may make a thousand decisions a second; nobody reads that many.
        if (this.following && n !== this.cursor) await new Promise((done) => setTimeout(done, FOLLOW_MS));
      }
    } finally {
      this.asking = false;
    }
    if (this.decision?.board_state === "replaying") this.askForBoard(this.decision.n);
  }

  async askForBoard(n) {
    await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
    if (this.cursor === n && !this.signal.aborted) this.fetchCursor();
  }

  /** Return decision `n`, from what is remembered or from the server. */
  async read(n) {
    const remembered = this.known.get(n);
    if (remembered) return remembered;
    const decision = withNumbers(await get(sessionPath(this.name, `/d/${n}`), this.signal));
    if (decision.board_state !== "replaying") {
      this.known.set(n, decision);
      if (this.known.size > REMEMBERED) this.known.delete(this.known.keys().next().value);
    }
    return decision;
  }

  /** Return a page of rows that fit the filters. */
  rows(from, count, filters, signal) {
    return get(sessionPath(this.name, `/d${query({ from, count, ...filters })}`), signal);
  }

  /** Go to the next decision in the order of margins, unless the reader has gone elsewhere meanwhile. */
  async least(after) {
    const from = this.cursor;
    const found = await get(sessionPath(this.name, `/least${query({ after })}`), this.signal);
    if (found.n !== null && this.cursor === from) this.move(found.n);
    return found;
  }

  /** Hold the ledger of a token of a decision, whatever else is shown; null lets go. */
  async pin(n, token = null) {
    this.pinned = n === null ? null : { n, token, decision: this.decision?.n === n ? this.decision : null };
    this.say("pin");
    if (this.pinned && !this.pinned.decision) {
      const pinned = this.pinned;
      try {
        pinned.decision = await this.read(n);
      } catch (error) {
        if (error.name === "AbortError") return;
        this.pinned = null;
        this.fault = error;
      }
      this.say("pin");
    }
  }

  /** Point at a token of the shown decision; null at none. */
  look(token) {
    if (this.looked === token) return;
    this.looked = token;
    this.say("look");
  }

  /** The decision whose pieces are shown: the pinned one, else that at the cursor. */
  get shown() {
    return this.pinned?.decision ?? this.decision;
  }

  /** The place of the token whose ledger is shown: looked at, pinned, else the first that was chosen. */
  get token() {
    const tokens = this.shown?.tokens ?? [];
    const wanted = this.looked ?? this.pinned?.token ?? null;
    if (wanted !== null && wanted < tokens.length) return wanted;
    const first = tokens.findIndex((token) => token.step !== null);
    return first >= 0 ? first : tokens.length ? 0 : null;
  }
}

/** Turn the numbers of a decision that JSON cannot hold into numbers. */
export function withNumbers(decision) {
  for (const key of ["margin", "legal_mass", "preferred_by"]) if (key in decision) decision[key] = number(decision[key]);
  for (const token of decision.tokens ?? []) token.logprob = number(token.logprob);
  for (const step of decision.ledger ?? []) stepNumbers(step);
  for (const option of decision.options ?? []) optionNumbers(option);
  return decision;
}

/** The same for a step of a ledger. */
export function stepNumbers(step) {
  step.mass = number(step.mass);
  for (const row of step.rows) for (const key of ["logprob", "before", "after"]) row[key] = number(row[key]);
  return step;
}

/** The same for an option. */
export function optionNumbers(option) {
  for (const key of ["raw", "null", "score", "learned", "probability"]) option[key] = number(option[key]);
  return option;
}
