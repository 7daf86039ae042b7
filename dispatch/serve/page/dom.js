// Makes elements. Text from outside becomes text nodes only; there is no way to hand in markup.

/**
 * Return a new element.
 * @param {string} tag name, with classes behind dots: "button.quiet.small"
 * @param {object} props `on` (listeners by event), `vars` (CSS variables by name), `data`, properties such as
 *   `hidden`, `type`, `value`, and everything else as an attribute; null and false leave an attribute out
 * @param {...(Node|string|number|null)} children strings become text
 */
export function make(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(props)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (key === "vars") setVars(element, value);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (PROPERTIES.has(key)) element[key] = value;
    else setAttribute(element, key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return element;
}

const PROPERTIES = new Set(["hidden", "value", "checked", "disabled", "open", "tabIndex", "textContent", "indeterminate"]);

function asNode(child) {
  return child instanceof Node ? child : String(child);
}

/** Set an attribute, or leave it out when the value is null, undefined or false. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Set CSS variables of an element through the object model, which a strict policy allows. */
export function setVars(element, vars) {
  for (const [name, value] of Object.entries(vars)) element.style.setProperty(`--${name}`, String(value));
}

/** Set the text of an element, only where it differs: what a reader has selected stays selected. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return element;
}

/** Let a click on a button inside leave the focus where it is, so that keys go on meaning what they meant. */
export function keepFocus(element) {
  element.addEventListener("mousedown", (event) => event.target.closest("button") && event.preventDefault());
  return element;
}

/** Call a function once a frame at most, with its last arguments; in a hidden tab as well. */
export function oncePerFrame(act) {
  let waiting = null;
  return (...given) => {
    const first = waiting === null;
    waiting = given;
    if (!first) return;
    const run = () => {
      const last = waiting;
      waiting = null;
      act(...last);
    };
    if (document.hidden) setTimeout(run, 50);
    else requestAnimationFrame(run);
  };
}

/** Call a function at once, then no more often than every `ms`, the last time after all calls. */
export function atMostEvery(ms, act) {
  let timer = null;
  let again = false;
  const run = () => {
    again = false;
    act();
    timer = setTimeout(() => {
      timer = null;
      if (again) run();
    }, ms);
  };
  return () => {
    if (timer === null) run();
    else again = true;
  };
}

/** Call a function when it has not been asked for again in `ms`. */
export function settled(act, ms) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), ms);
  };
}
