// @ts-check
import { element, setText } from "./dom.js";
import { clock } from "./model.js";

/** Shows how the tasks of all groups stand. It asks again every second. */
export class Work {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
    this.fault = element("p", { class: "warning", role: "status" });
    this.time = element("p", { class: "more" });
    this.text = element("pre", { class: "lines", tabindex: "0" });
    this.root = element("section", {}, element("h2", {}, "Work"), this.fault, this.time, this.text);
    this.ended = false;
    this.answer();
  }

  /** Ends the questions. */
  close() {
    this.ended = true;
  }

  show() {}

  async answer() {
    let fault = "";
    try {
      const r = await fetch(`work?${new URLSearchParams({ key: this.key })}`, { signal: AbortSignal.timeout(10000) });
      if (r.ok) {
        setText(this.text, await r.json());
        setText(this.time, `As of ${clock(new Date())}`);
      } else {
        fault = await r.text();
      }
    } catch (e) {
      fault = `the page does not answer: ${e}`;
    }
    if (this.ended) return;
    setText(this.fault, fault);
    setTimeout(() => this.answer(), 1000);
  }
}
