// The page: header, the view that the address names, keys.

import { get, post } from "./api.js";
import { Beside } from "./beside.js";
import { Bench } from "./bench.js";
import { make, setAttribute } from "./dom.js";
import { Home } from "./home.js";
import { actOf, showHelp } from "./keys.js";
import { formatRoute, parseRoute } from "./route.js";
import { SessionView } from "./sessionview.js";
import { Status } from "./status.js";
import { tab } from "./tabsource.js";
import { nextTheme, restoreTheme, theme } from "./theme.js";

/** Whether two routes name the same view of the same sessions, wherever in it. */
const sameView = (one, other) => ["view", "name", "other"].every((key) => one[key] === other[key]);
const VIEWS = { home: Home, session: SessionView, beside: Beside, bench: Bench };

class Page {
  constructor() {
    this.status = new Status();
    this.view = null;
    this.listed = null;
    this.links = { home: make("a", { href: "#/" }, "Sessions"), bench: make("a", { href: "#/bench" }, "Bench") };
    this.themeButton = make("button.icon.i-theme.quiet", { type: "button", on: { click: () => this.theme() } });
    const help = make("button.icon.i-help.quiet", { type: "button", "aria-label": "Keys", title: "Keys (?)", on: { click: showHelp } });
    this.main = make("main", { id: "main", tabindex: "-1" });
    document.body.replaceChildren(
      make("a.skip", { href: "#main", on: { click: (event) => { event.preventDefault(); this.main.focus(); } } }, "Skip to the session"),
      make("header.top", {}, make("span.brand", {}, "Inspector"), make("nav", { "aria-label": "Views" }, this.links.home, this.links.bench), this.themeButton, help),
      this.status.element, this.main);
    this.nameTheme();
    addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  async begin() {
    if (tab && !tab.ready) return this.offerTab();
    try {
      this.takeListed(await get("/api/sessions"));
    } catch (error) {
      this.fail(error);
    }
    const first = this.listed?.default;
    if (location.hash.length <= 1 && first) history.replaceState(null, "", formatRoute({ view: "session", name: first }));
    return this.follow();
  }

  /** Nothing is loaded into the tab yet, or it has ended: say what can be loaded, and why it has ended. */
  async offerTab(fault = "") {
    const { TabStart } = await import("./tabstart.js");
    this.show(new TabStart(this, fault));
    this.links.bench.hidden = true;
    document.title = "Inspector";
  }

  /** Everything is in the tab: begin to play, and show it. */
  async loaded() {
    try {
      const { name } = await post("/api/live/start", { cartridges: [tab.config.cartridge], seed: tab.config.seed });
      history.replaceState(null, "", formatRoute({ view: "session", name }));
    } catch (error) {
      this.fail(error);
    }
    this.begin();
  }

  show(view) {
    this.view?.close();
    this.view = view;
    this.main.replaceChildren(view.element);
  }

  takeListed(listed) {
    this.listed = listed;
    this.links.bench.hidden = !listed.bench;
  }

  /** Show what the address names. */
  follow(anew = false) {
    if (tab && !tab.ready) return;
    const route = parseRoute(location.hash);
    const same = this.route && sameView(this.route, route);
    this.route = route;
    if (same && this.view && !anew) {
      this.view.goTo?.(route);
      return;
    }
    this.show(new VIEWS[route.view](route, this));
    document.title = [route.name, route.view === "bench" ? "Bench" : null, "Inspector"].filter(Boolean).join(" · ");
    setAttribute(this.links.home, "aria-current", route.view === "home" ? "page" : null);
    setAttribute(this.links.bench, "aria-current", route.view === "bench" ? "page" : null);
  }

  /** Go somewhere by a step that the back button undoes. */
  open(route) {
    location.hash = formatRoute(route);
  }

  /** Show the same once more, after a failure. */
  again() {
    this.follow(true);
  }

  /** Let the address name where the reader is, without a step in the history; not where it names another view already. */
  link(route) {
    if (!sameView(parseRoute(location.hash), this.route)) return;
    const wanted = formatRoute(route);
    this.route = { ...this.route, ...route };
    if (location.hash !== wanted) history.replaceState(null, "", wanted);
  }

  say = (text) => this.status.say(text);

  fail = (error) => this.status.fail(error);

  theme() {
    nextTheme();
    this.nameTheme();
    this.status.say(`Theme: ${theme()}`);
  }

  nameTheme() {
    const word = `Theme: ${theme()}`;
    setAttribute(this.themeButton, "aria-label", word);
    setAttribute(this.themeButton, "title", `${word} (t)`);
  }

  /** Ask which session to put beside this one. */
  chooseBeside(name) {
    const others = (this.listed?.sessions ?? []).filter((session) => session.name !== name && !session.error);
    if (!others.length) return this.say("There is no other session to compare with.");
    return this.open({ view: "beside", name, other: others[0].name });
  }

  key(event) {
    const act = actOf(event);
    if (!act) return;
    const acts = {
      home: () => this.open({ view: "home" }),
      bench: () => (this.listed?.bench ? this.open({ view: "bench" }) : this.say("The bench needs a model; serve one with --model.")),
      theme: () => this.theme(),
      help: showHelp,
      ...this.view?.acts,
    };
    if (!acts[act]) return;
    event.preventDefault();
    acts[act]();
  }
}

restoreTheme();
const page = new Page();
tab?.addEventListener("gone", ({ why }) => page.offerTab(why));
page.begin();
