// What went wrong and what happened, in one place that is read aloud: the banner of a server that is gone, passing notes.

import { connection, get, renewToken } from "./api.js";
import { make, setText } from "./dom.js";
import { inLine } from "./shown.js";

const SHOWN_MS = 6000;
const RETRY_MS = 2000;

export class Status {
  constructor() {
    this.note = make("p.passing", { role: "status", hidden: true });
    this.text = make("span", {}, "The server does not answer. It may have ended; what was read stays here.");
    this.button = make("button.small", { type: "button", on: { click: () => this.knock() } }, "Try now");
    this.banner = make("div.banner", { role: "alert", hidden: true }, this.text, this.button);
    this.element = make("div.status", {}, this.banner, this.note);
    connection.addEventListener("gone", () => this.gone());
    connection.addEventListener("back", () => this.back());
  }

  gone() {
    this.banner.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.knock(), RETRY_MS);
  }

  back() {
    clearTimeout(this.timer);
    if (this.banner.hidden) return;
    this.banner.hidden = true;
    renewToken().catch(() => {});
    this.say("The server answers again.");
  }

  async knock() {
    try {
      await get("/api/sessions");
    } catch {
      this.timer = setTimeout(() => this.knock(), RETRY_MS);
    }
  }

  /** Say something for a while. */
  say(text, bad = false) {
    setText(this.note, inLine(text, 600));
    this.note.classList.toggle("bad", bad);
    this.note.hidden = false;
    clearTimeout(this.passing);
    this.passing = setTimeout(() => { this.note.hidden = true; }, SHOWN_MS);
  }

  /** Say what failed; a server that is gone has its banner already. */
  fail(error) {
    if (error.name === "GoneError" || error.name === "AbortError") return;
    this.say(error.message, true);
  }
}
