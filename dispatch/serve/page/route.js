// Deep links: what stands behind the # says what is shown.
//
//   #/                      the sessions          #/s/NAME             a session
//   #/bench                 the bench             #/s/NAME/d/812       at a decision
//   #/s/NAME/beside/OTHER   two sessions          #/s/NAME/d/812/t/3   with the step of token 3 pinned

/** Return what a hash names: `{view, name, other, n, token}`; what it does not name is null. */
export function parseRoute(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const route = { view: "home", name: null, other: null, n: null, token: null };
  if (parts[0] === "bench") return { ...route, view: "bench" };
  if (parts[0] !== "s" || !parts[1]) return route;
  Object.assign(route, { view: "session", name: parts[1] });
  for (let i = 2; i + 1 < parts.length; i += 2) {
    const [key, value] = [parts[i], parts[i + 1]];
    if (key === "beside" && value) Object.assign(route, { view: "beside", other: value });
    if (key === "d" && /^[1-9]\d{0,14}$/.test(value)) route.n = Number(value);
    if (key === "t" && /^\d{1,9}$/.test(value)) route.token = Number(value);
  }
  return route;
}

/** Return the hash of a route; the opposite of `parseRoute`. */
export function formatRoute({ view, name = null, other = null, n = null, token = null }) {
  if (view === "bench") return "#/bench";
  if (view === "home") return "#/";
  const parts = ["#", "s", encodeURIComponent(name)];
  if (view === "beside") parts.push("beside", encodeURIComponent(other));
  if (n !== null) parts.push("d", n);
  if (n !== null && token !== null) parts.push("t", token);
  return parts.join("/");
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
