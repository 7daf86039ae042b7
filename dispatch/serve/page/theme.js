// Light or dark: by the system, or as the reader chose, which is remembered.

const ORDER = ["system", "light", "dark"];
const KEY = "inspector-theme";

/** Return the theme that was chosen. */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** Choose a theme and remember it where the browser allows that. */
export function setTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // private windows may forbid it; the choice holds until the page is closed
  }
  window.dispatchEvent(new Event("resize")); // canvases are painted again
  return name;
}

/** The theme after this one: system, light, dark. */
export function nextTheme() {
  return setTheme(ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length]);
}

/** Take up what was chosen before. */
export function restoreTheme() {
  try {
    const chosen = localStorage.getItem(KEY);
    if (ORDER.includes(chosen) && chosen !== "system") document.documentElement.dataset.theme = chosen;
  } catch {
    // the same
  }
}
