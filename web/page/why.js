// @ts-check
import { Table, element, setText } from "./dom.js";
import { oldSince } from "./model.js";

/** The page of one predicate. It asks again every second. */
export class Why {
  /**
   * @param {string} group
   * @param {string} synchronizer
   * @param {string} predicate
   * @param {string} key
   * @param {number} at an instant of a run that is over, in milliseconds since 1970; 0: now
   */
  constructor(group, synchronizer, predicate, key, at) {
    this.query = new URLSearchParams({ group, synchronizer, predicate, key });
    this.instant = at;
    this.title = element("h2", {}, `Why ${predicate}`);
    this.fault = element("p", { class: "warning", role: "status" });
    this.body = element("div");
    this.root = element("section", {}, this.title, this.fault, this.body);
    /** @type {Explained[]} */
    this.parts = [];
    this.at = 0; // of the newest answer, by performance.now
    this.ended = false;
    this.answer();
  }

  /**
   * Asks for another instant.
   * @param {number} at
   */
  ask(at) {
    const waits = this.instant === 0; // For the next question, which comes by itself.
    this.instant = at;
    if (!waits) this.answer();
  }

  /** Ends the questions. */
  close() {
    this.ended = true;
  }

  async answer() {
    let fault = "";
    const at = this.instant;
    if (at > 0) this.query.set("at", String(at));
    try {
      const r = await fetch(`why?${this.query}`, at > 0 ? {} : { signal: AbortSignal.timeout(10000) });
      if (at !== this.instant) { // Another instant was chosen meanwhile, which asks by itself if this one was one.
        if (at === 0) this.answer();
        return;
      }
      if (r.ok) {
        this.fill(await r.json());
        this.at = performance.now();
      } else {
        fault = await r.text();
      }
    } catch (e) {
      fault = `the page does not answer: ${e}`;
    }
    if (this.ended) return;
    this.fault.dataset.text = fault;
    this.show();
    if (this.instant === 0) setTimeout(() => this.answer(), 1000);
  }

  /** Says how old the values are. */
  show() {
    const old = this.at > 0 && this.instant === 0 ? oldSince(performance.now() - this.at, 3000, new Date()) : "";
    const fault = this.fault.dataset.text ?? "";
    setText(this.fault, [old && `Old values: the last answer came ${old}.`, fault].filter(Boolean).join(" "));
    this.root.classList.toggle("old", old !== "");
  }

  /** @param {any} v a whyView */
  fill(v) {
    const views = v.groups.length > 0 ? v.groups : [v];
    while (this.parts.length > views.length) this.parts.pop()?.root.remove();
    views.forEach((/** @type {any} */ view, /** @type {number} */ i) => {
      if (!this.parts[i]) {
        this.parts[i] = new Explained();
        this.body.append(this.parts[i].root);
      }
      this.parts[i].fill(view);
    });
  }
}

/** One explanation. */
class Explained {
  constructor() {
    this.title = element("h3");
    this.facts = element("p");
    this.when = element("pre");
    this.parts = new Table("The condition, part by part", ["Part", "Value", "Members for", "Members against", "Unknown for", "Why unknown"]);
    this.missing = new Table("What is missing", ["Member", "What", "Since", "Kind"]);
    this.last = element("p");
    this.witness = new Table("States of the last decision", ["Member", "Began", "Ended", "State"]);
    this.pairs = new Table("Why they held at one instant: each state began before each other one ended. The closest pairs", ["State of", "began at the latest", "and that of", "ended at the earliest", "Later by"]);
    this.root = element("section", {}, this.title, this.facts, this.when, this.missing.root, this.parts.root, this.last, this.witness.root, this.pairs.root);
  }

  /** @param {any} v */
  fill(v) {
    setText(this.title, `${v.synchronizer}: ${v.name} is ${v.truth}${v.since && ` for ${v.since}`}`);
    setText(this.facts, [`fired ${v.fired} ${v.fired === "1" ? "time" : "times"}`, v.for && `hold time ${v.for}`, v.state, v.reason, ...v.notes].filter(Boolean).join("; "));
    setText(this.when, v.when);
    this.parts.fill(v.parts.map((/** @type {any} */ p) => ({
      class: ["true", "false", "unknown"].includes(p.value) ? `truth-${p.value}` : "", cells: ["\u2003".repeat(Math.min(p.depth, 20)) + p.text, p.value, p.for, p.against, p.maybe, p.reason],
    })));
    this.missing.fill(v.missing.map((/** @type {any} */ m) => ({ cells: [m.member, m.text, m.since, m.kind] })));
    this.missing.root.hidden = v.missing.length === 0;
    setText(this.last, v.last ? `Last decision ${v.last.id}, ${v.last.ago}: ${v.last.text}` : "There is no decision yet.");
    this.witness.fill((v.last?.witness ?? []).map((/** @type {any} */ w) => ({ cells: [w.member, w.began, w.ended, w.state] })), v.last?.left_out);
    this.witness.root.hidden = !v.last;
    this.pairs.fill((v.last?.pairs ?? []).map((/** @type {any} */ p) => ({ cells: [p.began, p.start, p.ended, p.end, p.margin] })), v.last?.pairs_more);
    this.pairs.root.hidden = !v.last || v.last.pairs.length === 0;
  }
}
