// The stage: the cartridge's board after the decision, or its text; what was asked, said and answered.

import { make, setText } from "./dom.js";
import { flagWords } from "./columns.js";
import { boardRuns, Screen } from "./screen.js";
import { count, decimal, duration, inLine, percent } from "./shown.js";

const NUMBERS = ["margin", "share", "legal mass", "rule", "passes", "tokens", "model", "planner"];

export class Stage {
  constructor() {
    this.said = make("strong.said.foreign.mono");
    this.flags = make("span.flags.small");
    this.asked = make("p.asked.foreign", { hidden: true });
    this.result = make("p.result.foreign");
    this.wish = make("p.wish.small.foreign", { hidden: true });
    this.screen = new Screen("pre.screen", { tabindex: "0", role: "img", "aria-label": "Board" });
    this.note = make("p.note.small.dim", { hidden: true });
    this.numbers = make("dl.numbers.small", {}, ...NUMBERS.flatMap((name) => [make("dt", {}, name), make("dd", {}, "–")]));
    this.values = [...this.numbers.querySelectorAll("dd")];
    this.element = make("div.stage", {},
      make("p.headline", {}, this.said, this.flags), this.asked, this.screen.element, this.note, this.result, this.wish, this.numbers);
  }

  close() {
    this.screen.close();
  }

  /** Show a decision; null shows that there is none. */
  show(decision, info) {
    this.element.classList.toggle("empty", !decision);
    if (!decision) return this.showNone();
    setText(this.said, inLine(decision.said));
    setText(this.flags, flagWords(decision.flags).join(" · "));
    this.asked.hidden = decision.request === null;
    setText(this.asked, decision.request === null ? "" : `“${inLine(decision.request, 600)}”`);
    setText(this.result, inLine(decision.failed ?? decision.result, 600));
    this.result.classList.toggle("bad", decision.refused || decision.failed !== null);
    this.wish.hidden = decision.preferred === null;
    if (decision.preferred !== null) {
      setText(this.wish, `Would rather have said: ${inLine(decision.preferred.split("\n")[0].trim())} (by ${decimal(decision.preferred_by)}); not legal now.`);
    }
    this.showBoard(decision, info);
    const { counts, ms } = decision;
    const share = decision.chosen === null ? null : decision.options[decision.chosen]?.probability;
    const told = [
      decimal(decision.margin), percent(share), percent(decision.legal_mass), decision.rule ?? "–", count(counts.passes),
      count(counts.evaluated), duration(ms.model), duration(ms.planner),
    ];
    told.forEach((text, i) => setText(this.values[i], inLine(text, 40)));
    return undefined;
  }

  showBoard(decision, info) {
    const { board } = decision;
    this.screen.element.hidden = !board;
    if (board) {
      this.screen.show(boardRuns(board));
      this.screen.element.setAttribute("aria-label", `Board: ${board.lines.map((line) => line.map((run) => run.text).join("")).join("; ").slice(0, 400)}`);
    }
    const why = decision.board_state === "replaying"
      ? `The board is being replayed: ${count(decision.board_at)} of ${count(decision.n)}.`
      : !board ? info?.boards_why ?? "" : "";
    this.note.hidden = !why;
    setText(this.note, inLine(why, 400));
  }

  showNone() {
    for (const part of [this.said, this.flags, this.result]) setText(part, "");
    for (const part of [this.asked, this.wish, this.screen.element]) part.hidden = true;
    this.note.hidden = false;
    setText(this.note, "No decision yet.");
    for (const value of this.values) setText(value, "–");
  }
}
