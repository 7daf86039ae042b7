// The bench: a prompt and what is legal, held by the mask (exact) and without it (raw), side by side.

import { get, post, postLines } from "./api.js";
import { BenchSide } from "./benchside.js";
import { make, setText } from "./dom.js";
import { chooser } from "./home.js";
import { inLine } from "./shown.js";

const CUSTOM = "custom";
const RATES = [["", "fastest"], ["1", "1 token a second"], ["2", "2"], ["5", "5"], ["10", "10"], ["20", "20"]];
const MODES = [["raw", "Raw", "the model alone"], ["exact", "Exact", "held by the mask"]];

export class Bench {
  constructor(route, hub) {
    this.hub = hub;
    this.presets = [];
    this.running = null;
    this.preset = chooser("Preset", [CUSTOM]);
    this.preset.field.addEventListener("change", () => this.usePreset(this.preset.field.value));
    this.kind = chooser("Legal is", ["schema", "options"], (name) => ({ schema: "a JSON Schema", options: "a list of options" })[name]);
    this.kind.field.addEventListener("change", () => this.changeKind());
    this.prompt = this.field("prompt", "Prompt", 4);
    this.schema = this.field("schema", "JSON Schema", 10);
    this.options = this.field("options", "Options, one a line", 10);
    this.none = this.field("null", "Null prompt (of options; may be left empty)", 2);
    this.rate = chooser("Rate", RATES.map(([value]) => value), (value) => RATES.find(([key]) => key === value)[1]);
    this.most = make("input.field", { type: "number", min: 1, max: 4096, value: 96, id: "bench-most", on: { input: () => this.edited() } });
    this.rule = chooser("Rule", [""], () => "as usual");
    this.button = make("button.primary.icon.i-play", { type: "submit", title: "Run, or stop (r)" }, "Run");
    this.notes = make("p.small.dim.foreign", { role: "status" });
    this.fault = make("p.fault-line", { role: "alert" });
    this.sides = Object.fromEntries(MODES.map(([mode, word, told]) => [mode, new BenchSide(mode, word, told)]));
    this.form = make("form.benchform", { "aria-label": "What to run", on: { submit: (event) => { event.preventDefault(); this.toggle(); } } },
      make("h1", {}, "Bench"), make("div.row", {}, this.preset.element, this.kind.element), this.prompt.element, this.schema.element, this.options.element, this.none.element,
      make("div.row", {}, this.rate.element, make("div", {}, make("label", { for: "bench-most" }, "Tokens at most"), this.most), this.rule.element), this.fault,
      make("div.row", {}, this.button, this.notes));
    this.element = make("div.bench", {}, this.form, make("div.sides", {}, ...Object.values(this.sides).map((side) => side.element)));
    this.changeKind();
    this.ready = this.load();
  }

  close() {
    this.running?.abort();
  }

  get acts() {
    return { run: () => this.toggle(), letGo: () => Object.values(this.sides).forEach((side) => side.letGo()) };
  }

  field(name, word, rows) {
    const id = `bench-${name}`;
    const field = make("textarea", { id, rows, spellcheck: "false", "aria-describedby": `${id}-fault`, on: { input: () => this.edited(name) } });
    const fault = make("p.fault-line", { id: `${id}-fault`, role: "alert" });
    return { field, fault, element: make("div.fieldbox", {}, make("label", { for: id }, word), field, fault) };
  }

  get fields() {
    return { prompt: this.prompt, schema: this.schema, options: this.options, null: this.none };
  }

  async load() {
    try {
      const { presets } = await get("/api/bench/presets");
      this.presets = presets;
      this.preset.field.replaceChildren(...presets.map(({ id, title }) => make("option", { value: id }, inLine(title, 60))), make("option", { value: CUSTOM }, CUSTOM));
      const rules = this.hub.listed?.rules ?? [];
      this.rule.field.append(...rules.map((name) => make("option", { value: name }, name)));
      this.usePreset(presets[0]?.id ?? CUSTOM);
    } catch (error) {
      setText(this.fault, inLine(error.message, 400));
    }
  }

  usePreset(id) {
    const preset = this.presets.find((one) => one.id === id);
    this.preset.field.value = preset ? id : CUSTOM;
    if (!preset) return;
    this.kind.field.value = preset.kind;
    this.prompt.field.value = preset.prompt;
    this.schema.field.value = preset.schema ?? "";
    this.options.field.value = (preset.options ?? []).join("\n");
    this.none.field.value = preset.null ?? "";
    this.most.value = preset.max_tokens;
    this.changeKind();
    this.clearFaults();
  }

  /** Something was typed: it is the preset no more. */
  edited(name) {
    this.preset.field.value = CUSTOM;
    if (this.fields[name]) this.clearFault(this.fields[name]);
  }

  changeKind() {
    const options = this.kind.field.value === "options";
    this.schema.element.hidden = options;
    this.options.element.hidden = this.none.element.hidden = !options;
  }

  clearFault({ field, fault }) {
    setText(fault, "");
    field.classList.remove("invalid");
    field.removeAttribute("aria-invalid");
  }

  clearFaults() {
    for (const one of Object.values(this.fields)) this.clearFault(one);
    setText(this.fault, "");
  }

  toggle() {
    return this.running ? this.stop() : this.run();
  }

  async stop() {
    const { running, runId } = this;
    setText(this.button, "Stopping…");
    try {
      if (runId) await post("/api/bench/stop", { run: runId });
      else running?.abort();
    } catch {
      running?.abort();
    }
  }

  get wanted() {
    const options = this.kind.field.value === "options";
    return {
      prompt: this.prompt.field.value, schema: options ? null : this.schema.field.value,
      options: options ? this.options.field.value.split("\n").filter((line) => line.trim()) : null,
      null: (options && this.none.field.value) || null, modes: MODES.map(([mode]) => mode), max_tokens: Number(this.most.value) || 96,
      rate: this.rate.field.value ? Number(this.rate.field.value) : null, rule: this.rule.field.value || null,
    };
  }

  async run() {
    this.clearFaults();
    for (const side of Object.values(this.sides)) side.begin();
    this.running = new AbortController();
    this.runId = null;
    this.paintButton();
    setText(this.notes, "Waiting for the model…");
    try {
      await postLines("/api/bench/run", this.wanted, (line) => this.take(line), this.running.signal);
    } catch (error) {
      this.say(error);
    } finally {
      this.running = null;
      this.runId = null;
      for (const side of Object.values(this.sides)) side.end();
      this.paintButton();
    }
  }

  paintButton() {
    const running = Boolean(this.running);
    setText(this.button, running ? "Stop" : "Run");
    this.button.className = `primary icon ${running ? "i-stop" : "i-play"}`;
  }

  take(line) {
    const side = this.sides[line.mode];
    if (line.event === "start") {
      this.runId = line.run;
      setText(this.notes, [`${line.prompt_tokens} prompt tokens`, ...line.notes].map((note) => inLine(note, 300)).join(" · "));
    } else if (line.event === "error") this.say(line.error);
    else side?.take(line);
  }

  say(error) {
    if (error.name === "AbortError") return setText(this.notes, "Stopped.");
    setText(this.notes, "");
    const field = this.fields[error.field];
    if (!field || field.element.hidden) return setText(this.fault, inLine(error.message, 1000));
    setText(field.fault, inLine(error.message, 1000));
    field.field.classList.add("invalid");
    field.field.setAttribute("aria-invalid", "true");
    return field.field.focus();
  }
}
