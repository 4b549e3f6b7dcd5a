// @ts-check
import { Control, sendChange } from "./control.js";
import { Table, element, setText, whyLink } from "./dom.js";
import { clock, instant, oldSince } from "./model.js";

/** After this many milliseconds a status is old. */
export const statusLimit = 3000;

/** What a synchronizer says, in one section. */
class Section {
  /** @param {import("./control.js").Change | null} change null: the page only reads */
  constructor(change) {
    this.control = change && new Control(change);
    this.title = element("h2");
    this.old = element("p", { class: "warning", role: "status" });
    this.facts = element("dl");
    this.waits = element("ul", { class: "waits" });
    this.predicates = new Table("Predicates", ["Predicate", "Truth", "For", "Fired", "Last decision", "Waits for"]);
    this.program = new Table("Program", ["Block", "Started", "Done", "Otherwise ended", "Now", "Path"]);
    this.waiting = new Table("What the program waits for", ["Construct", "Waits for", "Path"]);
    this.balance = new Table("Moves of the last plan", ["Load", "From", "To", "Why"]);
    this.refused = new Table("What was not moved", ["Load", "Why"]);
    this.decisions = new Table("Last decisions", ["Decision", "Predicate", "When"]);
    this.members = new Table("Members", ["Member", "Host", "Takes part", "Heard", "Clock", "Bound", "State", "Reports"]);
    this.root = element("section", {}, this.title, this.old, this.facts, this.waits, ...(this.control ? [this.control.root] : []),
      this.predicates.root, this.decisions.root, this.program.root, this.waiting.root, this.balance.root, this.refused.root, this.members.root);
  }

  /**
   * @param {any} s a statusView
   * @param {string[]} below synchronizers that are members of this one
   * @param {string} time of the status
   * @param {string} sought a part of the names of predicates and members that are shown
   */
  show(s, below, time, sought) {
    const found = (/** @type {any} */ x) => x.name.toLowerCase().includes(sought);
    setText(this.title, s.synchronizer);
    this.control?.show(s.params ?? []);
    const facts = [
      ["As of", time], ["Group", s.tenant ? `${s.group}, tenant ${s.tenant}` : s.group], ["Epoch", s.epoch], ["State", s.state], ["Leads", s.leader],
      ["Stands by", s.standbys.join("; ") || "no process"],
    ];
    for (const text of s.facts) facts.push(["Note", text]);
    if (s.program) facts.push(["Program", `${s.program.name} is ${s.program.outcome}`]);
    if (s.balance) facts.push(["Balance", [s.balance.text, s.balance.under_way].filter(Boolean).join("; ")]);
    if (below.length > 0) facts.push(["Level", `above ${below.join(", ")}`]);
    while (this.facts.children.length > 2 * facts.length) this.facts.lastElementChild?.remove();
    facts.flat().forEach((text, i) => {
      setText(this.facts.children[i] ?? this.facts.appendChild(element(i % 2 === 0 ? "dt" : "dd")), text);
    });
    const waits = s.waits.map((/** @type {string} */ w) => `Waits: ${w}`);
    if (s.waits_more > 0) waits.push(`and ${s.waits_more} more, not shown`);
    while (this.waits.children.length > waits.length) this.waits.lastElementChild?.remove();
    waits.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
      setText(this.waits.children[i] ?? this.waits.appendChild(element("li")), text);
    });
    this.predicates.fill(s.predicates.filter(found).map((/** @type {any} */ p) => ({
      class: `truth-${p.truth}`,
      cells: [{ text: p.name, href: whyLink(s.group, s.synchronizer, p.name) }, p.truth, p.since, p.fired, p.last, p.waits],
    })), s.predicates_more);
    const fill = (/** @type {Table} */ table, /** @type {any[]} */ rows, /** @type {string[]} */ keys, /** @type {number} */ more) => {
      table.fill(rows.map((row) => ({ cells: keys.map((k) => row[k]) })), more);
      table.root.hidden = rows.length === 0 && !more;
    };
    fill(this.program, s.program?.blocks ?? [], ["name", "starts", "done", "ended", "runs", "path"], s.program?.blocks_more ?? 0);
    fill(this.waiting, s.program?.waits ?? [], ["name", "for", "path"], s.program?.waits_more ?? 0);
    fill(this.balance, s.balance?.moves ?? [], ["load", "from", "to", "why"], 0);
    fill(this.refused, s.balance?.refused ?? [], ["load", "detail"], s.balance?.refused_more ?? 0);
    this.decisions.fill(s.decisions.map((/** @type {any} */ d) => ({
      cells: [d.id, { text: d.predicate, href: whyLink(s.group, s.synchronizer, d.predicate) }, d.ago],
    })));
    this.members.fill(s.members.filter(found).map((/** @type {any} */ m) => ({
      class: m.trouble ? "trouble" : "",
      cells: [m.name, m.host, m.part, m.heard, m.clock, m.bound, m.state, m.gap],
    })), s.members_more);
  }
}

/** The page of all synchronizers. */
export class Overview {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
    this.controlled = false;
    this.none = element("p", {}, "No synchronizer has answered yet.");
    this.root = element("div", {}, this.none);
    /** @type {Map<string, Section>} */
    this.sections = new Map();
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    this.none.hidden = state.statuses.size > 0;
    const names = new Set([...state.statuses.values()].map((s) => s.view.synchronizer));
    if (this.controlled !== (state.token !== "")) { // The page was started again, with other flags.
      for (const section of this.sections.values()) section.root.remove();
      this.sections.clear();
      this.controlled = !this.controlled;
    }
    for (const key of [...state.statuses.keys()].sort()) {
      const { view, at } = /** @type {{view: any, at: number}} */ (state.statuses.get(key));
      let section = this.sections.get(key);
      if (!section) {
        section = new Section(this.controlled ? (what) => sendChange(this.key, state.token, { synchronizer: view.synchronizer, group: view.group, ...what }) : null);
        this.sections.set(key, section);
        this.root.append(section.root);
      }
      const below = view.members.map((/** @type {any} */ m) => m.name).filter((/** @type {string} */ n) => names.has(n));
      const age = state.record ? 0 : performance.now() - at;
      section.show(view, below, state.record ? instant(state.at) : clock(new Date(Date.now() - age)), state.search.toLowerCase());
      const old = oldSince(age, statusLimit, new Date());
      setText(section.old, old && `Old values: ${view.synchronizer} has not answered since ${old}.`);
      section.root.classList.toggle("old", old !== "");
    }
  }
}
