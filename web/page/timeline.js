// @ts-check
import { Table, element, setText } from "./dom.js";
import { clock, layOut, place } from "./model.js";

const laneHeight = 22, labelWidth = 220, axisHeight = 24, maxLanes = 200, listed = 50;
const windows = [10, 30, 60, 300, 1800, 7200]; // seconds

const drawEvery = 200; // milliseconds; all lanes are laid out each time

/** The page of the events as they arrive. */
export class Timeline {
  constructor() {
    this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", "aria-label": "Timeline; the table below lists the newest events" }));
    this.choice = /** @type {HTMLSelectElement} */ (element("select", {}, ...windows.map((s) => element("option", { value: String(s) }, `${s} s`))));
    this.choice.value = "60";
    this.choice.onchange = () => { this.drawn = -Infinity; };
    this.drawn = -Infinity; // by performance.now
    this.pause = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
    this.note = element("p", { class: "more" });
    this.list = new Table("Newest events", ["Time", "Synchronizer", "Event"]);
    this.root = element("section", {}, element("h2", {}, "Timeline"),
      element("p", {}, element("label", {}, "Show the last ", this.choice), " ", element("label", {}, this.pause, " pause")),
      element("p", { class: "legend" }, "Filled: true, or an epoch. Outlined: false. Hatched: unknown. Empty: not known here. A mark is a decision, a signal or a message. Times are by the clock of each synchronizer's process; a state that has not ended reaches to the last status."),
      this.canvas, this.note, this.list.root);
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    if (this.pause.checked || performance.now() - this.drawn < drawEvery) return;
    this.drawn = performance.now();
    const events = state.events.shown();
    /** @type {Map<string, number>} */
    const times = new Map();
    for (const { view } of state.statuses.values()) { // Of two with one name the earlier.
      times.set(view.synchronizer, Math.min(view.time, times.get(view.synchronizer) ?? view.time));
    }
    const lanes = layOut(events, times);
    const shown = lanes.slice(0, maxLanes);
    let to = 0;
    for (const e of events) to = Math.max(to, e.time);
    for (const t of times.values()) to = Math.max(to, t);
    this.draw(shown, { from: to - 1000 * Number(this.choice.value), to, width: 0 });
    setText(this.note, [
      `${events.length} events`,
      lanes.length > shown.length && `${lanes.length - shown.length} lanes not shown`,
      state.events.leftOut > 0 && `${state.events.leftOut} older events left out`,
      state.events.missed > 0 && `${state.events.missed} events missed`,
    ].filter(Boolean).join("; "));
    this.list.fill(events.slice(-listed).reverse().map((e) => ({ cells: [clock(new Date(e.time)), e.synchronizer, e.text] })));
  }

  /**
   * @param {import("./model.js").Lane[]} lanes
   * @param {{from: number, to: number, width: number}} view
   */
  draw(lanes, view) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(labelWidth + 100, this.root.clientWidth), height = axisHeight + laneHeight * Math.max(1, lanes.length);
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const c = this.canvas.getContext("2d");
    if (!c) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    view.width = width - labelWidth;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = colour("--text");
    for (let i = 0; i <= 4; i++) {
      const t = view.from + ((view.to - view.from) * i) / 4;
      const label = view.to > 0 ? clock(new Date(t)) : "";
      c.textAlign = i === 4 ? "right" : "left";
      c.fillText(label, labelWidth + (view.width * i) / 4, axisHeight / 2);
    }
    c.textAlign = "left";
    lanes.forEach((lane, i) => {
      const top = axisHeight + i * laneHeight;
      c.fillStyle = colour("--text");
      c.fillText(`${lane.synchronizer} ${lane.lane}`, 4, top + laneHeight / 2, labelWidth - 12);
      c.fillStyle = colour("--line");
      c.fillRect(labelWidth, top + laneHeight - 1, view.width, 1);
      for (const span of lane.spans) {
        const at = place(span, view);
        if (!at || span.state === "none") continue;
        const x = labelWidth + at.x, y = top + 4, h = laneHeight - 9;
        c.fillStyle = c.strokeStyle = colour(span.state === "true" ? "--true" : span.state === "false" ? "--false" : span.state === "unknown" ? "--unknown" : "--epoch");
        if (span.state === "false") {
          c.fillRect(x, y, at.width, 1);
          c.fillRect(x, y + h - 1, at.width, 1);
          c.fillRect(x, y, 1, h);
        } else if (span.state === "unknown") {
          for (let dx = 0; dx < at.width; dx += 4) c.fillRect(x + dx, y, Math.min(1, at.width), h);
        } else {
          c.fillRect(x, y, at.width, h);
        }
      }
      c.fillStyle = colour("--mark");
      for (const mark of lane.marks) {
        const at = place({ from: mark.time, to: mark.time }, view);
        if (at) c.fillRect(labelWidth + at.x, top + 1, 2, laneHeight - 3);
      }
    });
  }
}
