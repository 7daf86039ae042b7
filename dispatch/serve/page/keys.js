// Every key and what it does: the list that `?` shows is the one that is obeyed.

import { make } from "./dom.js";

/** Key (as `KeyboardEvent.key` gives it), what is shown for it, the act's name, what it does; by group. */
export const KEYS = [
  ["Move", [
    [" ", "space", "playPause", "play or pause"],
    ["ArrowLeft", "←", "back", "one decision back"],
    ["ArrowRight", "→", "on", "one on; at the end of a paused live session, play one"],
    ["Shift+ArrowLeft", "⇧ ←", "farBack", "ten back"],
    ["Shift+ArrowRight", "⇧ →", "farOn", "ten on"],
    ["Home", "Home", "first", "first decision"],
    ["End", "End", "last", "last decision"],
    ["g", "g", "jump", "go to a decision by number"],
    ["n", "n", "least", "next least confident"],
    ["N", "⇧ N", "leastAnew", "least confident of all"],
    ["/", "/", "filter", "filter the decisions"],
  ]],
  ["Play", [
    ["+", "+", "faster", "faster"],
    ["-", "−", "slower", "slower"],
    ["f", "f", "follow", "follow the newest"],
    ["s", "s", "stop", "stop a live session at the next pass"],
  ]],
  ["Look inside", [
    ["[", "[", "tokenBack", "choosing step before"],
    ["]", "]", "tokenOn", "choosing step after"],
    ["p", "p", "pin", "pin this step, or let it go"],
    ["Escape", "Esc", "letGo", "let the pin go; close what is open"],
    ["1", "1", "tab1", "ledger"],
    ["2", "2", "tab2", "whole opcodes"],
    ["3", "3", "tab3", "prompt"],
    ["a", "a", "again", "decide again here"],
  ]],
  ["The page", [
    ["h", "h", "home", "all sessions"],
    ["b", "b", "bench", "bench"],
    ["c", "c", "beside", "compare with another session"],
    ["t", "t", "theme", "theme: system, light, dark"],
    ["r", "r", "run", "bench: run, or stop"],
    ["?", "?", "help", "these keys"],
  ]],
];

const ACTS = new Map(KEYS.flatMap(([, keys]) => keys.map(([key, , act]) => [key, act])));
const TYPED_IN = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const OWN_SPACE = "button, summary, a[href], [role=tab], input";

/** Return the act that a key event asks for, or null; what is typed into a field, and what a widget needs, is none. */
export function actOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.isComposing) return null;
  const { target, key } = event;
  if (key === "Escape" && target.matches?.(TYPED_IN)) {
    target.blur();
    return null;
  }
  if (target.matches?.(TYPED_IN)) return null;
  if (key === " " && target.matches?.(OWN_SPACE)) return null;
  if (document.querySelector("dialog[open]")) return null;
  const shifted = event.shiftKey && key.startsWith("Arrow") ? `Shift+${key}` : key;
  return ACTS.get(shifted) ?? null;
}

/** The dialog of all keys; made when it is opened, and taken away when it is closed. */
export function showHelp() {
  const close = make("button.icon.i-close.quiet", { type: "button", "aria-label": "Close", on: { click: () => dialog.close() } });
  const dialog = make("dialog.help", { "aria-labelledby": "helptitle", on: { close: () => dialog.remove(), click: (event) => event.target === dialog && dialog.close() } },
    make("div.dialoghead", {}, make("h2", { id: "helptitle" }, "Keys"), close),
    make("div.keygroups", {}, ...KEYS.map(([group, keys]) => make("section", {}, make("h3", {}, group),
      make("dl.keys", {}, ...keys.flatMap(([, word, , told]) => [make("dt", {}, make("kbd", {}, word)), make("dd", {}, told)]))))),
    make("p.small.dim", {}, "Lists, tabs, tokens and the strip take arrow keys where they have the focus. Hover or focus looks at a token, a click pins it."));
  document.body.append(dialog);
  dialog.addEventListener("keydown", (event) => event.key === "?" && dialog.close());
  dialog.showModal();
}
