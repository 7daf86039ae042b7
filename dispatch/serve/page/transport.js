// Play, pause, step, speed, follow, stop. On a log they move the reader; on a live session they drive the server.

import { post } from "./api.js";
import { keepFocus, make, setAttribute, setText } from "./dom.js";
import { count } from "./shown.js";

const SPEEDS = [["asis", "as it was"], ["1", "1 a second"], ["2", "2"], ["5", "5"], ["10", "10"], ["30", "30"], ["100", "100"], ["max", "fastest"]];
const LIVE_SPEEDS = [["max", "fastest"], ["0.2", "1 in 5 s"], ["0.5", "1 in 2 s"], ["1", "1 a second"], ["2", "2"], ["5", "5"], ["10", "10"], ["30", "30"]];
const LONGEST_MS = 3000;
const SHORTEST_MS = 50;
const FRAME_MS = 33;

export class Transport {
  /** @param {function(Error)} fail is called with what went wrong */
  constructor(session, fail) {
    Object.assign(this, { session, fail, playing: false });
    const button = (icon, label, act, key) => make(`button.icon.${icon}`, { type: "button", "aria-label": label, title: `${label} (${key})`, on: { click: act } });
    this.first = button("i-first", "First decision", () => session.move(1), "Home");
    this.back = button("i-back", "One back", () => this.step(-1), "←");
    this.toggle = button("i-play", "Play", () => this.playPause(), "space");
    this.next = button("i-step", "One on", () => this.step(1), "→");
    this.last = button("i-last", "Last decision", () => session.move(session.count), "End");
    this.jump = make("input.field.jump", { type: "number", min: 1, inputmode: "numeric", "aria-label": "Go to decision", title: "Go to decision (g)", on: { change: () => this.go() } });
    this.of = make("span.of");
    this.speed = make("select", { "aria-label": "Decisions a second", title: "Speed (+ and −)", on: { change: () => this.setSpeed() } });
    this.followed = make("button", { type: "button", "aria-pressed": "false", title: "Follow the newest decision (f)", on: { click: () => this.toggleFollow() } }, "Follow");
    this.stopped = make("button.icon.i-stop", { type: "button", title: "End the session at the next pass (s)", on: { click: () => this.stop() } }, "Stop");
    this.element = keepFocus(make("div.transport", { role: "group", "aria-label": "Controls" },
      make("span.group", {}, this.first, this.back, this.toggle, this.next, this.last), make("span.group", {}, this.jump, this.of),
      make("span.group", {}, this.speed, this.followed, this.stopped)));
    this.ended = new AbortController();
    for (const event of ["info", "columns", "cursor"]) session.addEventListener(event, () => this.paint(), { signal: this.ended.signal });
    this.kind = null;
    this.paint();
  }

  close() {
    this.ended.abort();
    this.pauseHere();
  }

  /** Whether the buttons drive a session on the server that has not ended. */
  get drives() {
    const { live } = this.session;
    return live !== null && live.state !== "ended";
  }

  get runs() {
    return this.drives ? this.session.live.state === "playing" : this.playing;
  }

  paint() {
    const { session } = this;
    const kind = this.drives ? "live" : "log";
    if (kind !== this.kind) {
      this.kind = kind;
      this.pauseHere();
      this.speed.replaceChildren(...(kind === "live" ? LIVE_SPEEDS : SPEEDS).map(([value, word]) => make("option", { value }, word)));
      this.speed.value = kind === "live" ? speedName(session.live.speed) : "asis";
    }
    const word = this.runs ? "Pause" : "Play";
    if (this.toggle.getAttribute("aria-label") !== word) {
      setAttribute(this.toggle, "aria-label", word);
      this.toggle.title = `${word} (space)`;
      this.toggle.className = `icon ${this.runs ? "i-pause" : "i-play"}`;
    }
    if (kind === "live" && document.activeElement !== this.speed) this.showSpeed(session.live.speed);
    if (document.activeElement !== this.jump) this.jump.value = session.cursor || "";
    this.jump.max = session.count;
    setText(this.of, `of ${count(session.count)}`);
    const none = session.count === 0;
    this.first.disabled = this.back.disabled = none || session.cursor <= 1;
    this.last.disabled = none || session.cursor >= session.count;
    this.next.disabled = !this.drives && (none || session.cursor >= session.count);
    this.toggle.disabled = none && !this.drives;
    this.followed.hidden = !session.grows;
    setAttribute(this.followed, "aria-pressed", session.following ? "true" : "false");
    this.stopped.hidden = !this.drives;
    this.stopped.disabled = Boolean(session.live?.stopping);
    setText(this.stopped, session.live?.stopping ? "Stopping…" : "Stop");
  }

  showSpeed(speed) {
    const name = speedName(speed);
    if (![...this.speed.options].some((option) => option.value === name)) this.speed.append(make("option", { value: name }, name));
    this.speed.value = name;
  }

  playPause() {
    if (this.drives) return this.ask(this.runs ? "pause" : "play");
    return this.playing ? this.pauseHere() : this.playHere();
  }

  /** One on or back; at the end of a live session that pauses, one on plays one decision. */
  step(by) {
    const { session } = this;
    if (by > 0 && this.drives && session.cursor >= session.count) {
      session.follow(true);
      return this.ask("step", { count: 1 });
    }
    if (!this.drives) this.pauseHere();
    return session.move(session.cursor + by);
  }

  go() {
    const n = Number(this.jump.value);
    if (Number.isFinite(n) && n >= 1) this.session.move(n);
    this.jump.value = this.session.cursor;
  }

  focusJump() {
    this.jump.focus();
    this.jump.select();
  }

  setSpeed() {
    if (this.drives) return this.ask("speed", { speed: this.speed.value === "max" ? null : Number(this.speed.value) });
    if (this.playing) this.playHere();
    return undefined;
  }

  /** The next faster or slower speed. */
  changeSpeed(by) {
    const { speed } = this;
    const from = speed.selectedIndex;
    const order = this.kind === "live" ? [...speed.options].map((_, i) => i).sort((a, b) => fast(speed.options[a]) - fast(speed.options[b])) : [...speed.options].map((_, i) => i);
    const to = order[Math.min(Math.max(order.indexOf(from) + by, 0), order.length - 1)];
    if (to === from) return;
    speed.selectedIndex = to;
    this.setSpeed();
  }

  toggleFollow() {
    this.session.follow(!this.session.following);
  }

  stop() {
    if (this.drives) this.ask("stop");
  }

  async ask(action, more = {}) {
    const { session } = this;
    if (action === "play" && session.cursor >= session.count) session.follow(true);
    try {
      const { live } = await post(`/api/live/${action}`, { session: session.name, ...more }, this.ended.signal);
      session.info.live = live;
      session.say("info");
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
    }
  }

  playHere() {
    const { session } = this;
    clearTimeout(this.timer);
    this.playing = true;
    if (session.cursor >= session.count) session.move(1);
    let due = performance.now();
    const tick = () => {
      if (!this.playing) return;
      let now = performance.now();
      let to = session.cursor;
      while (due <= now && to < session.count) {
        to += 1;
        due += this.waits(to);
        if (this.speed.value === "max") break;
      }
      if (to !== session.cursor) session.move(to);
      if (to >= session.count) return this.pauseHere();
      now = performance.now();
      if (due < now - 1000) due = now;
      this.timer = setTimeout(tick, Math.max(due - now, this.speed.value === "max" ? FRAME_MS / 2 : 4));
      return undefined;
    };
    due += this.waits(session.cursor);
    this.timer = setTimeout(tick, Math.min(due - performance.now(), LONGEST_MS));
    this.paint();
  }

  /** Milliseconds that decision `n` stays before the next one is shown. */
  waits(n) {
    const { value } = this.speed;
    if (value === "max") return 0;
    if (value !== "asis") return 1000 / Number(value);
    const { at_ms: at } = this.session.columns;
    const gap = n < this.session.count ? at[n] - at[n - 1] : 0;
    return Number.isFinite(gap) ? Math.min(Math.max(gap, SHORTEST_MS), LONGEST_MS) : SHORTEST_MS;
  }

  pauseHere() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.playing = false;
    this.paint();
  }
}

function speedName(speed) {
  return speed === null ? "max" : String(speed);
}

function fast(option) {
  return option.value === "max" ? Infinity : Number(option.value);
}
