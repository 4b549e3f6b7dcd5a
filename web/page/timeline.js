// @ts-check
import { Table, element, setText } from "./dom.js";
import { View, clock, instant, layOut, nextDecision, place } from "./model.js";
import { LiveStates, alike, firstAfter, together } from "./states.js";

const laneHeight = 22, labelWidth = 220, axisHeight = 24, listed = 50, maxAlike = 200;
const firstWide = 60_000; // milliseconds
const dragLeast = 4; // pixels; less is a click
const textLeast = 24; // pixels; a value has its text in a wider bar
const colours = 6; // of values

const drawEvery = 200; // milliseconds

/**
 * A row of the drawing: a lane of events, a member, or members alike.
 * @typedef {{label: string, lanes: import("./model.js").Lane[], member?: import("./states.js").MemberLane, fold?: string}} DrawnRow
 */

/** The page of the events as they arrive, or of a run that is over. */
export class Timeline {
  /**
   * @param {(at: number) => void} choose chooses an instant of a run that is over
   * @param {() => void} soon has the page be drawn soon
   */
  constructor(choose, soon) {
    this.choose = choose;
    this.soon = soon;
    this.canvas = /** @type {HTMLCanvasElement} */ (element("canvas", { role: "img", tabindex: "0", "aria-label": "Timeline; the tables below list the states at the instant and the newest events. Keys: + and - zoom, the arrows move, End follows the newest, n and p go to the next decision and the one before" }));
    this.space = element("div", {}, this.canvas);
    this.box = element("div", { class: "lanes" }, this.space);
    this.view = new View(firstWide);
    this.newest = 0;
    this.over = false; // the run is over
    this.drawn = -Infinity; // by performance.now
    /** @type {{view: {from: number, to: number, width: number}, at: number | null, width: number, height: number, scrolled: number}} */
    this.painted = { view: { from: 0, to: 0, width: 0 }, at: null, width: 0, height: 0, scrolled: 0 };
    this.at = 0; // that was drawn
    this.marked = 0; // the decision that was gone to last in a live run; 0: none
    /** @type {Set<string>} */
    this.opened = new Set(); // members alike that are shown one by one
    this.sought = "";
    this.offered = ""; // fields to choose from
    this.laid = ""; // what lanes were laid out from
    /** @type {import("./model.js").Lane[]} */
    this.lanes = [];
    /** @type {DrawnRow[]} */
    this.rows = [];
    /** @type {import("./app.js").State | null} */
    this.state = null;
    this.pause = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
    this.fold = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox" }));
    this.field = /** @type {HTMLSelectElement} */ (element("select"));
    this.fold.onchange = this.field.onchange = () => this.change(() => {});
    this.forMembers = element("span", { class: "buttons", hidden: "" }, element("label", {}, "show ", this.field), element("label", {}, this.fold, " fold members alike"));
    this.note = element("p", { class: "more" });
    this.together = element("ul", { class: "together" });
    this.alike = new Table("States of members at the instant", ["Synchronizer", "Members", "State", "Which"]);
    this.alike.root.className = "table alike";
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
        button("Newest", () => { this.view.to = null; }), element("label", {}, this.pause, " pause"), this.forMembers),
      element("p", { class: "legend" }, "Predicates and epochs: filled is true, or an epoch; outlined is false; hatched is unknown. Members: filled where the state certainly held, hatched within the bound of the clocks, outlined where it had not ended. Empty: not known here. A mark is a decision, a signal or a message. Times of events are by the clock of each synchronizer's process; a state that has not ended reaches to the last status."),
      this.box, this.note, this.together, this.alike.root, this.list.root);
    this.alike.root.hidden = true;
    this.listen();
  }

  /**
   * Goes to another decision of a live run.
   * @param {number} step -1: the one before, 1: the next one
   */
  jump(step) {
    if (!this.state || this.over) return;
    const to = nextDecision(this.state.events.shown(), this.marked || this.newest + 1, step);
    if (to === null) return;
    this.marked = to;
    this.change(() => { this.view.to = to + this.view.wide / 4; });
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
    this.box.onscroll = () => this.change(() => {});
    this.canvas.onwheel = (e) => {
      if (e.shiftKey) return; // It scrolls the lanes.
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
      if (begun >= 0 && !moved) this.click(e);
      begun = -1;
    };
  }

  /** @param {{offsetX: number, offsetY: number}} e */
  click(e) {
    const row = this.rows[Math.floor((e.offsetY - axisHeight + this.box.scrollTop) / laneHeight)];
    if (e.offsetX <= labelWidth) {
      if (row?.fold) this.toggle(row.fold);
    } else if (this.over) {
      const { from, to } = this.view.range(this.newest);
      this.choose(from + this.share(e) * (to - from));
    }
  }

  /**
   * Opens or closes members alike.
   * @param {string} key
   */
  toggle(key) {
    this.change(() => {
      if (!this.opened.delete(key)) this.opened.add(key);
    });
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
    this.soon();
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    this.state = state;
    if (state.record && !this.over) { // Show all of it first.
      this.over = true;
      this.newest = state.record.to;
      this.view.wide = Math.max(1, (state.record.to - state.record.from) * 1.02);
    }
    if (state.record && state.at !== this.at) { // Another instant was chosen.
      this.drawn = -Infinity;
      this.view.reach(state.at, this.newest);
      this.at = state.at;
    }
    const sought = state.search.toLowerCase();
    if (this.pause.checked && this.drawn !== -Infinity || performance.now() - this.drawn < drawEvery && sought === this.sought) return;
    this.drawn = performance.now();
    this.sought = sought;
    const events = state.events.shown();
    this.layOut(state, events);
    const rows = this.memberRows(state), marked = new Set(rows.flatMap((r) => r.lanes));
    this.rows = this.lanes.filter((lane) => !marked.has(lane)).map((lane) => /** @type {DrawnRow} */ ({ label: `${lane.synchronizer} ${lane.lane}`, lanes: [lane] })).concat(rows)
      .filter((r) => r.label.toLowerCase().includes(sought));
    this.draw(this.view.range(this.newest), state.record ? state.at : this.marked || null);
    setText(this.note, [
      `${events.length} events`,
      `${this.rows.length} lanes`,
      state.events.leftOut > 0 && `${state.events.leftOut} older events left out`,
      state.events.missed > 0 && `${state.events.missed} events missed`,
      state.members && state.members.leftOut > 0 && `${state.members.leftOut} states of members left out`,
      state.members instanceof LiveStates && state.members.unseen > 0 && `${state.members.unseen} reports of members came between two statuses, so their states are not shown`,
    ].filter(Boolean).join("; "));
    const known = state.record ? events.filter((e) => e.time <= state.at) : events;
    const time = (/** @type {number} */ t) => (state.record ? instant(t).slice(11) : clock(new Date(t)));
    this.list.fill(known.slice(-listed).reverse().map((e) => ({ cells: [time(e.time), e.synchronizer, e.text] })));
  }

  /**
   * Sorts events into lanes, unless nothing is new.
   * @param {import("./app.js").State} state
   * @param {import("./model.js").PageEvent[]} events
   */
  layOut(state, events) {
    /** @type {Map<string, number>} */
    const times = new Map();
    for (const { view } of state.statuses.values()) { // Of two with one name the earlier.
      times.set(view.synchronizer, Math.min(state.record ? state.record.to : view.time, times.get(view.synchronizer) ?? Infinity));
    }
    const laid = JSON.stringify([state.events.page, state.events.last, state.events.missed, events.length, [...times]]);
    if (laid === this.laid) return;
    this.laid = laid;
    this.lanes = layOut(events, times);
    let newest = 0;
    for (const e of events) newest = Math.max(newest, e.time);
    for (const t of times.values()) newest = Math.max(newest, t);
    if (!this.pause.checked) this.newest = state.record ? state.record.to : newest;
  }

  /**
   * The rows of members, and what is known of them at the instant.
   * @param {import("./app.js").State} state
   * @returns {DrawnRow[]}
   */
  memberRows(state) {
    const members = state.members, none = !members || members.lanes.length === 0;
    this.forMembers.hidden = this.alike.root.hidden = none;
    if (none) return [];
    const fields = [...members.fields.keys()], offered = JSON.stringify(fields);
    if (offered !== this.offered) {
      const chosen = this.field.value;
      if (this.offered === "") this.fold.checked = members.lanes.length > 50;
      this.offered = offered;
      this.field.replaceChildren(...fields.map((name) => element("option", { value: name }, name)));
      this.field.value = fields.includes(chosen) ? chosen : members.firstField();
    }
    const groups = alike(members, members.lanes, state.at);
    this.alike.fill(groups.slice(0, maxAlike).map((g) => ({
      cells: [g.synchronizer, String(g.lanes.length), g.text, g.lanes.slice(0, 20).map((l) => l.member).join(", ") + (g.lanes.length > 20 ? `, and ${g.lanes.length - 20} more` : ""),
        this.fold.checked && g.lanes.length > 1 ? { text: this.opened.has(g.key) ? "Fold" : "Open", act: () => this.toggle(g.key) } : ""],
    })), Math.max(0, groups.length - maxAlike));
    const names = state.record ? [...new Set(members.lanes.map((l) => l.synchronizer))] : []; // The times of a live run are not exact enough.
    while (this.together.children.length > names.length) this.together.lastElementChild?.remove();
    names.forEach((name, i) => {
      const text = `States of ${name} together: ${together(members.lanes.filter((l) => l.synchronizer === name), state.at)}.`;
      setText(this.together.children[i] ?? this.together.appendChild(element("li")), text);
    });
    const lanes = new Map(this.lanes.map((lane) => [JSON.stringify([lane.synchronizer, lane.lane]), lane]));
    const row = (/** @type {import("./states.js").MemberLane} */ member) => {
      const lane = lanes.get(JSON.stringify([member.synchronizer, `member ${member.member}`])); // Of signals to it.
      return { label: `${member.synchronizer} ${member.host} ${member.member}`, member, lanes: lane ? [lane] : [] };
    };
    if (!this.fold.checked) return members.lanes.map(row);
    return groups.flatMap((g) => {
      if (g.lanes.length === 1) return [row(g.lanes[0])];
      const rows = g.lanes.map(row);
      if (this.opened.has(g.key)) return rows.map((r) => ({ ...r, label: `\u2212 ${r.label}`, fold: g.key }));
      return [{ ...rows[0], label: `+ ${g.lanes.length} alike: ${rows[0].label}`, lanes: rows.flatMap((r) => r.lanes), fold: g.key }];
    });
  }

  /**
   * @param {{from: number, to: number}} view
   * @param {number | null} at the instant that is marked
   */
  draw(view, at) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(labelWidth + 100, this.root.clientWidth), whole = axisHeight + laneHeight * Math.max(1, this.rows.length);
    const height = Math.min(whole, Math.max(300, Math.floor((window.innerHeight || 900) * 0.7)));
    this.space.style.height = `${whole}px`;
    this.box.style.height = `${height}px`;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    this.painted = { view: { ...view, width: width - labelWidth }, at, width, height, scrolled: this.box.scrollTop || 0 }; // The width is as width says.
    const c = this.canvas.getContext("2d");
    if (!c) return;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint(c);
  }

  /**
   * Paints what was drawn last.
   * @param {CanvasRenderingContext2D} c
   */
  paint(c) {
    const { view, at, width, height, scrolled } = this.painted;
    const style = getComputedStyle(document.documentElement);
    /** @type {Map<string, string>} */
    const known = new Map();
    const colour = (/** @type {string} */ name) => {
      if (!known.has(name)) known.set(name, style.getPropertyValue(name).trim());
      return known.get(name) ?? "";
    };
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "left";
    const first = Math.floor(scrolled / laneHeight), last = Math.min(this.rows.length, Math.ceil((scrolled + height) / laneHeight));
    for (let i = first; i < last; i++) {
      const row = this.rows[i], top = axisHeight + i * laneHeight - scrolled;
      c.fillStyle = colour("--text");
      c.fillText(row.label, 4, top + laneHeight / 2, labelWidth - 12);
      c.fillStyle = colour("--line");
      c.fillRect(labelWidth, top + laneHeight - 1, view.width, 1);
      if (row.member) this.drawMember(c, row.member, top, view, colour);
      for (const lane of row.lanes) this.drawLane(c, lane, top, view, colour);
    }
    c.clearRect(0, 0, width, axisHeight); // Of a lane that is scrolled half behind it.
    c.fillStyle = colour("--text");
    for (let i = 0; i <= 4; i++) {
      const t = view.from + ((view.to - view.from) * i) / 4;
      const label = view.to <= 0 ? "" : view.to - view.from < 30_000 ? instant(t).slice(11) : clock(new Date(t));
      c.textAlign = i === 4 ? "right" : "left";
      c.fillText(label, labelWidth + (view.width * i) / 4, axisHeight / 2);
    }
    const line = at === null ? null : place({ from: at, to: at }, view);
    if (line) {
      c.fillStyle = colour("--warn");
      c.fillRect(labelWidth + line.x, axisHeight - 4, 1, height - axisHeight + 4);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} c
   * @param {import("./model.js").Lane} lane
   * @param {number} top
   * @param {{from: number, to: number, width: number}} view
   * @param {(name: string) => string} colour
   */
  drawLane(c, lane, top, view, colour) {
    for (const span of lane.spans) {
      const at = place(span, view);
      if (!at || span.state === "none") continue;
      const x = labelWidth + at.x, y = top + 4, h = laneHeight - 9;
      c.fillStyle = colour(span.state === "true" ? "--true" : span.state === "false" ? "--false" : span.state === "unknown" ? "--unknown" : "--epoch");
      if (span.state === "false") outline(c, x, y, at.width, h);
      else if (span.state === "unknown") hatch(c, x, y, at.width, h);
      else c.fillRect(x, y, at.width, h);
    }
    c.fillStyle = colour("--mark");
    for (const mark of lane.marks) {
      const at = place({ from: mark.time, to: mark.time }, view);
      if (at) c.fillRect(labelWidth + at.x, top + 1, 2, laneHeight - 3);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} c
   * @param {import("./states.js").MemberLane} lane
   * @param {number} top
   * @param {{from: number, to: number, width: number}} view
   * @param {(name: string) => string} colour
   */
  drawMember(c, lane, top, view, colour) {
    const members = this.state?.members;
    if (!members) return;
    const y = top + 4, h = laneHeight - 9;
    const part = (/** @type {number} */ from, /** @type {number} */ to, /** @type {(c: CanvasRenderingContext2D, x: number, y: number, width: number, h: number) => void} */ shape) => {
      const at = from > to ? null : place({ from, to }, view);
      if (at) shape(c, labelWidth + at.x, y, at.width, h);
      return at;
    };
    let shown = "";
    for (let i = firstAfter(lane.states, view.from); i < lane.states.length && lane.states[i].start <= view.to; i++) {
      const s = lane.states[i], value = members.value(s.row, this.field.value);
      c.fillStyle = colour(value ? `--value${value.number % colours}` : "--false");
      if (s.start < s.started) part(s.start, Math.min(s.started, Math.max(s.end, s.ended)), hatch);
      if (s.end < s.ended) part(Math.max(s.end, s.start), s.ended, hatch);
      if (s.open) part(Math.max(s.started, s.end), Math.max(lane.seen ?? this.newest, s.end), outline);
      const at = part(s.started, s.end, fill);
      if (!at || !value || at.width < textLeast) continue;
      c.fillStyle = colour("--back");
      c.fillRect(labelWidth + at.x, y, 1, h); // From one state to the next.
      if (value.text === shown || c.measureText(value.text).width > at.width - 8) continue;
      shown = value.text;
      c.fillText(value.text, labelWidth + at.x + 4, y + h / 2);
    }
  }
}

/** @param {CanvasRenderingContext2D} c @param {number} x @param {number} y @param {number} width @param {number} h */
function fill(c, x, y, width, h) {
  c.fillRect(x, y, width, h);
}

/** @param {CanvasRenderingContext2D} c @param {number} x @param {number} y @param {number} width @param {number} h */
function outline(c, x, y, width, h) {
  c.fillRect(x, y, width, 1);
  c.fillRect(x, y + h - 1, width, 1);
  c.fillRect(x, y, 1, h);
}

/** @param {CanvasRenderingContext2D} c @param {number} x @param {number} y @param {number} width @param {number} h */
function hatch(c, x, y, width, h) {
  for (let dx = 0; dx < width; dx += 4) c.fillRect(x + dx, y, Math.min(1, width), h);
}
