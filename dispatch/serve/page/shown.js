// How foreign text and numbers are shown: what cannot be seen or would reorder a line becomes visible.

const NAMES = new Map([["\n", "⏎"], ["\t", "⇥"], ["\r", "␍"], ["\0", "␀"], [" ", "␣"], ["\u00a0", "⍽"]]);
const SPOKEN = new Map([["\n", "newline"], ["\t", "tab"], ["\r", "return"], ["\0", "nul"], [" ", "space"]]);
// Control, format (bidirectional marks, zero width), surrogate, private, unassigned, separators other than a space.
const ODD = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const ODD_BUT_LINES = /[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
/** So many characters of a text stand in one line of a list; all of it stands where it is read whole. */
export const LINE = 160;

/** Return a character as an escape: `\x1b`, `\u202e`, `\u{e0001}`. */
function escaped(char) {
  const code = char.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}

/** Return a text for one line: control and format characters as escapes, newlines as a sign, cut when very long. */
export function inLine(text, most = LINE) {
  const source = String(text ?? "");
  const cut = source.length > most ? `${[...source.slice(0, most)].join("")}…` : source;
  return cut.replace(/\n/g, "⏎").replace(ODD, escaped);
}

/** Return a text of several lines: newlines and tabs stay, everything else that cannot be seen is escaped. */
export function inLines(text) {
  return String(text ?? "").replace(ODD_BUT_LINES, escaped);
}

/** Return a token's bytes for reading: spaces and control characters as signs, bytes that are no text in hex. */
export function pieceText(token) {
  if (token.hex !== null && token.hex !== undefined) return `<${token.hex.match(/../g)?.join(" ") ?? ""}>`;
  const text = token.text ?? "";
  if (text === "") return "<empty>";
  const cut = text.length > LINE ? `${text.slice(0, LINE)}…` : text;
  return cut.replace(/[\n\t\r\0 \u00a0]/g, (char) => NAMES.get(char)).replace(ODD, escaped);
}

/** Return a token as a screen reader should say it. */
export function pieceSpoken(token) {
  if (token.hex !== null && token.hex !== undefined) return `bytes ${token.hex.match(/../g)?.join(" ") ?? "none"}`;
  const text = token.text ?? "";
  if (text === "") return "empty token";
  return text.slice(0, LINE).replace(/[\n\t\r\0 ]/g, (char) => ` ${SPOKEN.get(char)} `).replace(ODD, escaped).trim();
}

const COUNT = new Intl.NumberFormat("en");

/** Return a whole number with thousands marked; a dash for none. */
export function count(value) {
  return value === null || value === undefined ? "–" : COUNT.format(value);
}

/** Return a number with a fixed count of decimals and a real minus sign; a dash for none, a sign for infinities. */
export function decimal(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  return value.toFixed(digits).replace("-", "−");
}

/** Return a share between 0 and 1 as a percentage that never says 0 or 100 of what is not. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const hundred = 100 * share;
  if (hundred > 0 && hundred < 0.01) return "<0.01\u00a0%";
  if (hundred < 1) return `${hundred.toFixed(2)}\u00a0%`;
  if (hundred < 100 && hundred >= 99.95) return ">99.9\u00a0%";
  return `${hundred.toFixed(1)}\u00a0%`;
}

/** Return milliseconds in the unit that reads best. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return `${ms.toFixed(2)}\u00a0ms`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)}\u00a0ms`;
  return ms < 60000 ? `${(ms / 1000).toFixed(1)}\u00a0s` : `${Math.floor(ms / 60000)}\u00a0min ${Math.round((ms % 60000) / 1000)}\u00a0s`;
}
