// Answers out of the page itself, where it was written into one file by `export --html`: nobody is there to ask.

const embedded = document.getElementById("kernel-export");

/** What the file holds: `answers` by path, the strip, all rows; null where a server is asked. */
export const exported = embedded ? JSON.parse(embedded.textContent) : null;

/** Return the answer to a GET, as an object or as bytes; undefined where the file does not have it. */
export function answerOf(path) {
  const [place, question = ""] = path.split("?");
  const asked = new URLSearchParams(question);
  if (path in exported.answers) return exported.answers[path];
  if (place.endsWith("/strip")) return bytesOf(exported.strip);
  if (place.endsWith("/d")) return rowsOf(asked);
  if (place.endsWith("/least")) return leastOf(asked.get("after"));
  return exported.answers[place];
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)).buffer;
}

function rowsOf(asked) {
  const flags = Number(asked.get("flags") ?? 0);
  const slow = Number(asked.get("ms_above") ?? -Infinity);
  const same = (name, row) => !asked.has(name) || row[name] === asked.get(name);
  const found = exported.rows.filter((row) => (!flags || row.flags & flags) && (slow === -Infinity || row.ms > slow) && same("cartridge", row) && same("outcome", row));
  const from = Number(asked.get("from") ?? 0);
  return { total: found.length, from, rows: found.slice(from, from + Number(asked.get("count") ?? 50)) };
}

function leastOf(after) {
  const order = exported.rows.filter((row) => typeof row.margin === "number").sort((a, b) => a.margin - b.margin || a.n - b.n);
  const next = order[1 + order.findIndex((row) => String(row.n) === after)];
  return next ? { n: next.n, margin: next.margin, rank: order.indexOf(next) + 1 } : { n: null, margin: null, rank: order.length };
}
