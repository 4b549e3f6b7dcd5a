// @ts-check
import { element, setText } from "./dom.js";

/**
 * Has a change carried out.
 * @callback Change
 * @param {{values?: Record<string, string>, reset?: string[], reload?: boolean}} what
 * @returns {Promise<string>} what is different, or why nothing is
 */

/** The changes that an operator can make to a synchronizer. */
export class Control {
  /** @param {Change} change */
  constructor(change) {
    this.change = change;
    this.body = element("tbody");
    this.table = element("table", {}, element("caption", {}, "Parameters"),
      element("thead", {}, element("tr", {}, ...["Parameter", "Value", "Takes", "Default", "New value"].map((h) => element("th", { scope: "col" }, h)))), this.body);
    this.result = element("p", { role: "status" });
    this.names = "";
    /** @type {Map<string, {value: HTMLElement, reset: HTMLButtonElement, takes: HTMLElement, initial: HTMLElement}>} */
    this.rows = new Map();
    this.root = element("div", { class: "table control" }, element("h3", {}, "Control"),
      element("p", { class: "buttons" }, this.button("Read the configuration again", () => ({ reload: true }))), this.table, this.result);
  }

  /**
   * @param {string} text
   * @param {() => {values?: Record<string, string>, reset?: string[], reload?: boolean}} what
   */
  button(text, what) {
    const b = /** @type {HTMLButtonElement} */ (element("button", { type: "button" }, text));
    b.onclick = async () => {
      setText(this.result, "waiting for the synchronizer");
      setText(this.result, await this.change(what()));
    };
    return b;
  }

  /** @param {{name: string, value: string, takes: string, initial: string, set: boolean}[]} params */
  show(params) {
    const names = JSON.stringify(params.map((p) => p.name));
    if (names !== this.names) {
      this.names = names;
      this.rows.clear();
      this.body.replaceChildren(...params.map((p) => this.row(p.name)));
      this.table.hidden = params.length === 0;
    }
    for (const p of params) {
      const row = this.rows.get(p.name);
      if (!row) continue;
      setText(row.value, p.value);
      setText(row.takes, p.takes);
      setText(row.initial, p.initial);
      row.reset.disabled = !p.set;
    }
  }

  /** @param {string} name */
  row(name) {
    const input = /** @type {HTMLInputElement} */ (element("input", { "aria-label": `New value of ${name}`, size: "12" }));
    const set = this.button("Set", () => ({ values: { [name]: input.value } })), reset = this.button("Reset", () => ({ reset: [name] }));
    set.setAttribute("aria-label", `Set ${name}`);
    reset.setAttribute("aria-label", `Reset ${name}`);
    input.onkeydown = (e) => {
      if (e.key === "Enter") set.click();
    };
    const cells = { value: element("td"), takes: element("td"), initial: element("td") };
    this.rows.set(name, { ...cells, reset });
    return element("tr", {}, element("td", {}, name), cells.value, cells.takes, cells.initial, element("td", {}, input, " ", set, " ", reset));
  }
}

/**
 * Sends a change to the page's process.
 * @param {string} key
 * @param {string} token
 * @param {any} change
 * @returns {Promise<string>}
 */
export async function sendChange(key, token, change) {
  try {
    const r = await fetch(`control?${new URLSearchParams({ key })}`, {
      method: "POST", headers: { "Content-Type": "application/json", "Pegasus-Token": token }, body: JSON.stringify(change), signal: AbortSignal.timeout(20_000),
    });
    if (!r.ok) return `Nothing was changed, as far as is known: ${await r.text()}`;
    const texts = await r.json();
    return texts.length > 0 ? `Changed: ${texts.join("; ")}` : "Nothing is different.";
  } catch (e) {
    return `The page does not answer, and the change may have been made: ${e}`;
  }
}
