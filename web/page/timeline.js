// @ts-check
import { Table, element, setText } from "./dom.js";
import { View, clock, instant, layOut, place } from "./model.js";

const laneHeight = 22, labelWidth = 220, axisHeight = 24, maxLanes = 200, listed = 50;
const firstWide = 60_000; // milliseconds
const dragLeast = 4; // pixels; less is a click

const drawEvery = 200; // milliseconds; all lanes are laid out each time

/** The page of the events as they arrive, or of a run that is over. */
export class Timeline {
  /** @param {(at: number) => void} choose chooses an instant of a run that is over */
  constructor(choose) {
    this.choose = choose;
    this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", tabindex: "0", "aria-label": "Timeline; the table below lists the newest events. Keys: + and - zoom, the arrows move, End follows the newest" }));
    this.view = new View(firstWide);
    this.newest = 0;
    this.over = false; // the run is over
    this.drawn = -Infinity; // by performance.now
    this.at = 0; // that was drawn
    this.pause = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
    this.note = element("p", { class: "more" });
    this.list = new Table("Newest events", ["Time", "Synchronizer", "Event"]);
    this.list.root.className = "table wide";
    const button = (/** @type {string} */ text, /** @type {() => void} */ act) => {
      const b = /** @type {HTMLButtonElement} */ (element("button", { type: "button" }, text));
      b.onclick = () => this.change(act);
      return b;
    };
    this.root = element("section", {}, element("h2", {}, "Timeline"),
      element("p", { class: "buttons" }, button("Zoom in", () => this.view.zoom(0.5, 0.5)), button("Zoom out", () => this.view.zoom(2, 0.5)),
        button("Earlier", () => this.view.pan(-0.5, this.newest)), button("Later", () => this.view.pan(0.5, this.newest)),
        button("Newest", () => { this.view.to = null; }), element("label", {}, this.pause, " pause")),
      element("p", { class: "legend" }, "Filled: true, or an epoch. Outlined: false. Hatched: unknown. Empty: not known here. A mark is a decision, a signal or a message. Times are by the clock of each synchronizer's process; a state that has not ended reaches to the last status."),
      this.canvas, this.note, this.list.root);
    this.listen();
  }

  /** Takes keys, the wheel and the pointer. */
  listen() {
    this.canvas.onkeydown = (e) => {
      const act = {
        "+": () => this.view.zoom(0.5, 0.5), "-": () => this.view.zoom(2, 0.5), ArrowLeft: () => this.view.pan(-0.2, this.newest),
        ArrowRight: () => this.view.pan(0.2, this.newest), End: () => { this.view.to = null; },
      }[e.key];
      if (!act || e.ctrlKey || e.altKey || e.metaKey) return;
      e.preventDefault();
      this.change(act);
    };
    this.canvas.onwheel = (e) => {
      e.preventDefault();
      this.change(() => this.view.zoom(e.deltaY < 0 ? 0.8 : 1.25, this.share(e)));
    };
    let begun = -1, last = 0, moved = false;
    this.canvas.onpointerdown = (e) => {
      begun = last = e.offsetX;
      moved = false;
      this.canvas.setPointerCapture(e.pointerId);
    };
    this.canvas.onpointermove = (e) => {
      if (begun < 0) return;
      moved ||= Math.abs(e.offsetX - begun) >= dragLeast;
      if (!moved) return;
      this.change(() => this.view.pan((last - e.offsetX) / this.width(), this.newest));
      last = e.offsetX;
    };
    this.canvas.onpointerup = (e) => {
      if (begun >= 0 && !moved && this.over && e.offsetX > labelWidth) {
        const { from, to } = this.view.range(this.newest);
        this.choose(from + this.share(e) * (to - from));
      }
      begun = -1;
    };
  }

  /** How wide the lanes are. */
  width() {
    return Math.max(100, this.root.clientWidth - labelWidth);
  }

  /**
   * Where the pointer is, as a share of the view.
   * @param {{offsetX: number}} e
   */
  share(e) {
    return Math.min(1, Math.max(0, (e.offsetX - labelWidth) / this.width()));
  }

  /** @param {() => void} act */
  change(act) {
    act();
    this.drawn = -Infinity;
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    if (state.record && !this.over) { // Show all of it first.
      this.over = true;
      this.newest = state.record.to;
      this.view.wide = Math.max(1, (state.record.to - state.record.from) * 1.02);
    }
    if (state.record && state.at !== this.at) { // Another instant was chosen.
      this.change(() => this.view.reach(state.at, this.newest));
      this.at = state.at;
    }
    if (this.pause.checked && this.drawn !== -Infinity || performance.now() - this.drawn < drawEvery) return;
    this.drawn = performance.now();
    const events = state.events.shown();
    /** @type {Map<string, number>} */
    const times = new Map();
    for (const { view } of state.statuses.values()) { // Of two with one name the earlier.
      times.set(view.synchronizer, Math.min(state.record ? state.record.to : view.time, times.get(view.synchronizer) ?? Infinity));
    }
    const lanes = layOut(events, times);
    const shown = lanes.slice(0, maxLanes);
    let newest = 0;
    for (const e of events) newest = Math.max(newest, e.time);
    for (const t of times.values()) newest = Math.max(newest, t);
    if (!this.pause.checked) this.newest = state.record ? state.record.to : newest;
    this.draw(shown, { ...this.view.range(this.newest), width: 0 }, state.record ? state.at : null);
    setText(this.note, [
      `${events.length} events`,
      lanes.length > shown.length && `${lanes.length - shown.length} lanes not shown`,
      state.events.leftOut > 0 && `${state.events.leftOut} older events left out`,
      state.events.missed > 0 && `${state.events.missed} events missed`,
    ].filter(Boolean).join("; "));
    const known = state.record ? events.filter((e) => e.time <= state.at) : events;
    const time = (/** @type {number} */ t) => (state.record ? instant(t).slice(11) : clock(new Date(t)));
    this.list.fill(known.slice(-listed).reverse().map((e) => ({ cells: [time(e.time), e.synchronizer, e.text] })));
  }

  /**
   * @param {import("./model.js").Lane[]} lanes
   * @param {{from: number, to: number, width: number}} view
   * @param {number | null} at the instant that is shown of a run that is over
   */
  draw(lanes, view, at) {
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
    view.width = width - labelWidth; // As width says.
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = colour("--text");
    for (let i = 0; i <= 4; i++) {
      const t = view.from + ((view.to - view.from) * i) / 4;
      const label = view.to <= 0 ? "" : view.to - view.from < 30_000 ? instant(t).slice(11) : clock(new Date(t));
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
    const line = at === null ? null : place({ from: at, to: at }, view);
    if (line) {
      c.fillStyle = colour("--warn");
      c.fillRect(labelWidth + line.x, axisHeight - 4, 1, height - axisHeight + 4);
    }
  }
}
