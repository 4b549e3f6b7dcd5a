// @ts-check
import { element, setText } from "./dom.js";
import { instant, nextDecision } from "./model.js";

/** Chooses an instant of a run that is over. */
export class Cursor {
  /** @param {(at: number) => void} choose */
  constructor(choose) {
    this.choose = choose;
    this.range = /** @type {HTMLInputElement} */ (element("input", { type: "range", step: "1", "aria-label": "Instant of the run" }));
    this.range.onchange = () => choose(Number(this.range.value));
    this.range.oninput = () => setText(this.text, instant(Number(this.range.value)));
    this.text = element("output");
    this.before = /** @type {HTMLButtonElement} */ (element("button", { type: "button" }, "Decision before"));
    this.after = /** @type {HTMLButtonElement} */ (element("button", { type: "button" }, "Next decision"));
    this.before.onclick = () => this.go(-1);
    this.after.onclick = () => this.go(1);
    /** @type {import("./app.js").State | null} */
    this.state = null;
    this.note = element("p", { class: "warning", role: "status" });
    this.root = element("div", { class: "cursor", hidden: "" }, this.range, this.text, this.before, this.after, this.note);
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    const record = state.record;
    if (!record) return;
    this.root.hidden = false;
    this.range.min = String(record.from);
    this.range.max = String(record.to);
    this.range.value = String(state.at);
    setText(this.text, instant(state.at));
    this.state = state;
  }

  /**
   * Chooses the instant of another decision.
   * @param {number} step -1: the one before, 1: the next one
   */
  go(step) {
    if (!this.state?.record) return;
    const to = nextDecision(this.state.events.shown(), this.state.at, step);
    if (to === null) this.fault(step > 0 ? "No decision comes after this instant." : "No decision comes before this instant.");
    else this.choose(Math.min(to, this.state.record.to));
  }

  /** @param {string} text empty: none */
  fault(text) {
    setText(this.note, text);
  }
}
