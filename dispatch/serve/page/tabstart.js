// The view before anything is loaded into the tab: what will be loaded, a button, a file picker, and what went wrong.

import { make, setText } from "./dom.js";
import { inLine } from "./shown.js";
import { tab } from "./tabsource.js";

const STAGES = { python: "Loading Python", model: "Loading the model", load: "Starting the model", check: "Checking the vocabulary", cartridges: "Starting the cartridges" };

export class TabStart {
  /** @param {string} fault why what was loaded has ended, if it has */
  constructor(hub, fault) {
    this.hub = hub;
    const { model } = tab.config;
    this.fault = make("p.fault-line", { role: "alert" }, fault);
    this.told = make("p.small", { role: "status" });
    this.bar = make("progress", { hidden: true, "aria-label": "Loaded so far" });
    this.button = make("button.primary.icon.i-play", { type: "button", on: { click: () => this.load(null) } }, model.place ? `Load ${model.name} (${megabytes(model.bytes)})` : "Load");
    this.button.hidden = !model.place;
    this.file = make("input", { type: "file", id: "tab-file", accept: ".gguf", on: { change: () => this.file.files[0] && this.load(this.file.files[0]) } });
    this.kept = make("div.kept");
    this.element = make("div.home.tabstart", {},
      make("div.listhead", {}, make("h1", {}, "Play in this tab")),
      make("div.startbox", {},
        make("p", {}, `The model, the mask and the Python of this page run in this tab. Nothing is loaded before you say so, and nothing leaves it. Python and its packages are ${megabytes(tab.config.bytes)} more.`),
        make("p", {}, this.button), make("p", {}, make("label", { for: "tab-file" }, model.place ? "or a GGUF file of yours, with the same vocabulary" : `Pick the GGUF file of ${model.name}`), " ", this.file),
        this.bar, this.told, this.fault),
      this.kept);
    this.progress = (event) => this.paint(event);
    tab.addEventListener("progress", this.progress);
    this.ready = this.showKept();
  }

  close() {
    tab.removeEventListener("progress", this.progress);
  }

  get acts() {
    return {};
  }

  paint({ stage, done, total }) {
    const counted = stage === "model" && total > 0;
    setText(this.told, `${STAGES[stage] ?? "Loading"}…${counted ? ` ${megabytes(done)} of ${megabytes(total)}` : ""}`);
    this.bar.hidden = false;
    if (counted) [this.bar.max, this.bar.value] = [total, done];
    else this.bar.removeAttribute("value");
  }

  async load(file) {
    setText(this.fault, "");
    this.button.disabled = this.file.disabled = true;
    try {
      const { python, model, all } = await tab.load(file);
      this.hub.say(`Loaded: Python in ${python.toFixed(1)} s, the model in ${model.toFixed(1)} s, all in ${all.toFixed(1)} s.`);
      this.hub.loaded();
    } catch (error) {
      this.bar.hidden = true;
      setText(this.told, "");
      setText(this.fault, inLine(error.message, 1000));
    } finally {
      this.button.disabled = this.file.disabled = false;
      this.file.value = "";
    }
  }

  /** Logs of sessions that a reload broke off, or that were played before. */
  async showKept() {
    const { dropLog, keptLogs, saveFile } = await import("./tab/kept.js");
    const kept = await keptLogs().catch(() => []);
    if (!kept.length) return;
    const rows = kept.map(({ session, text }) => {
      const row = make("li", {}, make("span.foreign", {}, inLine(about(session, text), 200)), " ",
        make("button.small", { type: "button", on: { click: () => saveFile(text, `${session.replace(/\W+/g, "-")}.jsonl`) } }, "Save the log"), " ",
        make("button.small.quiet", { type: "button", on: { click: () => dropLog(session).then(() => row.remove()) } }, "Forget it"));
      return row;
    });
    this.kept.replaceChildren(make("h2", {}, "Played here before"), make("p.small.dim", {}, "A tab that is loaded anew begins with an empty memory. These logs were kept in this browser up to their last decision; when the model is loaded they can be looked at here."), make("ul", {}, ...rows));
  }
}

function about(session, text) {
  const lines = text.split("\n").filter(Boolean);
  const ended = lines.at(-1)?.startsWith('{"event":"outcome"');
  const decisions = lines.filter((line) => line.startsWith('{"event":"decision"')).length;
  return `${session.slice(0, 16).replace("T", " ")}: ${decisions} decisions, ${ended ? "ended" : "broken off"}`;
}

function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
