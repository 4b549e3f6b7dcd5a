// @ts-check
// The states of members. It touches no document, so that tests run it alone.

/**
 * A state. It began between start and started, and ended between end and ended. An open one had not ended when the run did.
 * Times are in milliseconds since 1970.
 * @typedef {{start: number, started: number, end: number, ended: number, open: boolean, row: number}} MemberState
 * Of a live run, seen is when a status has shown the last state, known says whether the last status has, and first is the number of the first state.
 * @typedef {{synchronizer: string, host: string, member: string, states: MemberState[], key?: string, seen?: number, known?: boolean, first?: number}} MemberLane
 * @typedef {{names: string[], values: string[]}} Row
 */

const maxLanes = 2000;
const few = 12; // different values of a field that is chosen first

/** The states of all members. */
export class MemberStates {
  /**
   * @param {any} answer a statesView
   * @param {number} from the beginning of the run, in milliseconds since 1970
   */
  constructor(answer, from) {
    /** @type {Row[]} */
    this.rows = answer.rows;
    /** @type {number} */
    this.leftOut = answer.left_out;
    /** @type {MemberLane[]} */
    this.lanes = answer.lanes.map((/** @type {any} */ l) => ({ synchronizer: l.synchronizer, host: l.host, member: l.member, states: unpack(l.states, from) }));
    /** @type {Map<string, Map<string, number>>} values of each field, in the order in which they come */
    this.fields = new Map();
    for (const row of this.rows) this.noteValues(row);
  }

  /** @param {Row} row */
  noteValues(row) {
    row.names.forEach((name, i) => {
      const values = this.fields.get(name) ?? new Map();
      if (!values.has(row.values[i])) values.set(row.values[i], values.size);
      this.fields.set(name, values);
    });
  }

  /** The field that is shown first: one with few values, if there is one with several. */
  firstField() {
    let first = "";
    for (const [name, values] of this.fields) {
      if (values.size > 1 && values.size <= few) return name;
      first ||= name;
    }
    return first;
  }

  /**
   * @param {number} row
   * @param {string} field
   * @returns {{text: string, number: number} | null} null: the state has no such field
   */
  value(row, field) {
    const r = this.rows[row], i = r.names.indexOf(field);
    if (i < 0) return null;
    return { text: r.values[i], number: this.fields.get(field)?.get(r.values[i]) ?? 0 };
  }

  /** @param {number} row */
  text(row) {
    const r = this.rows[row];
    return r.names.map((name, i) => `${name}=${r.values[i]}`).join(" ");
  }
}

/** The states of members that the statuses of a live run have shown: at most limit of them, and 2,000 lanes. */
export class LiveStates extends MemberStates {
  /** @param {number} limit */
  constructor(limit = 100_000) {
    super({ rows: [], left_out: 0, lanes: [] }, 0);
    this.limit = limit;
    this.unseen = 0; // reports between those that the statuses have shown
    this.cut = 0; // states that this browser does not keep any more
    /** @type {Map<string, MemberLane>} */
    this.byKey = new Map();
    /** @type {Map<string, number>} */
    this.numbers = new Map(); // of rows
  }

  /** @param {any} frame a lanesView */
  update(frame) {
    if (frame.all) {
      this.lanes = [];
      this.byKey.clear();
      this.cut = 0;
      this.compact();
    }
    this.leftOut = frame.left_out + this.cut;
    this.unseen = frame.unseen;
    const rows = frame.rows.map((/** @type {Row} */ row) => this.number(row)), before = this.byKey.size;
    for (const l of frame.lanes) this.take(l, frame.from, rows);
    if (this.byKey.size !== before) this.lanes.sort((a, b) => compare([a.synchronizer, a.host, a.member], [b.synchronizer, b.host, b.member]));
    const count = this.lanes.reduce((n, lane) => n + lane.states.length, 0);
    if (count > this.limit) {
      for (const lane of this.lanes) this.trim(lane, Math.min(lane.states.length - 1, 1 + Math.floor(lane.states.length / 10)));
    }
    if (this.rows.length > 1000 + 2 * count || count > this.limit) this.compact();
  }

  /**
   * Puts states into their lane. Those that come again replace what was known of them.
   * @param {any} l a memberLane
   * @param {number} from as that of unpack
   * @param {number[]} rows the number here of each row of the frame
   */
  take(l, from, rows) {
    const key = JSON.stringify([l.group, l.synchronizer, l.member]);
    let lane = this.byKey.get(key);
    if (!lane) {
      if (this.lanes.length >= maxLanes) this.evict();
      lane = { synchronizer: l.synchronizer, host: l.host, member: l.member, states: [], key, first: l.first ?? 0 };
      this.byKey.set(key, lane);
      this.lanes.push(lane);
    }
    let at = (l.first ?? 0) - (lane.first ?? 0);
    if (at < 0 || at > lane.states.length) { // The lane was begun again.
      lane.states = [];
      lane.first = l.first ?? 0;
      at = 0;
    }
    lane.host = l.host;
    lane.known = l.known ?? false;
    lane.seen = from + (l.seen ?? 0) / 1000;
    lane.states.length = at;
    for (const s of unpack(l.states, from)) lane.states.push({ ...s, row: rows[s.row] });
  }

  /**
   * @param {Row} row
   * @returns {number}
   */
  number(row) {
    const text = JSON.stringify([row.names, row.values]);
    let n = this.numbers.get(text);
    if (n === undefined) {
      n = this.rows.push(row) - 1;
      this.numbers.set(text, n);
      this.noteValues(row);
    }
    return n;
  }

  /**
   * Forgets the first states of a lane.
   * @param {MemberLane} lane
   * @param {number} n
   */
  trim(lane, n) {
    if (n <= 0) return;
    lane.states.splice(0, n);
    lane.first = (lane.first ?? 0) + n;
    this.cut += n;
    this.leftOut += n;
  }

  /** Forgets the lane that no status has shown for longest. */
  evict() {
    let oldest = this.lanes[0];
    for (const lane of this.lanes) if ((lane.seen ?? 0) < (oldest.seen ?? 0)) oldest = lane;
    this.trim(oldest, oldest.states.length);
    this.lanes.splice(this.lanes.indexOf(oldest), 1);
    this.byKey.delete(oldest.key ?? "");
  }

  /** Forgets the rows that no state has. */
  compact() {
    const rows = this.rows;
    this.rows = [];
    this.numbers.clear();
    this.fields.clear();
    for (const lane of this.lanes) for (const s of lane.states) s.row = this.number(rows[s.row]);
  }
}

/** @param {string[]} a @param {string[]} b */
function compare(a, b) {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

/**
 * @param {number[]} numbers six for each state, in microseconds
 * @param {number} from
 */
function unpack(numbers, from) {
  const at = (/** @type {number} */ i) => from + numbers[i] / 1000;
  /** @type {MemberState[]} */
  const states = [];
  for (let i = 0; i + 6 <= numbers.length; i += 6) {
    states.push({ start: at(i), started: at(i + 1), end: at(i + 2), ended: at(i + 3), open: numbers[i + 4] === 1, row: numbers[i + 5] });
  }
  return states;
}

/**
 * The number of the first state that ends after an instant; that of the states if there is none.
 * @param {MemberState[]} states
 * @param {number} at
 */
export function firstAfter(states, at) {
  let low = 0, high = states.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (states[middle].open || Math.max(states[middle].end, states[middle].ended) > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * The state of a member at an instant.
 * @param {MemberLane} lane
 * @param {number} at
 * @returns {{state: MemberState, certain: boolean} | null} null: not known
 */
export function stateAt(lane, at) {
  let found = null;
  for (let i = firstAfter(lane.states, at); i < lane.states.length && lane.states[i].start <= at; i++) {
    const state = lane.states[i], certain = state.started <= at && at <= state.end;
    if (certain) return { state, certain };
    found ??= { state, certain };
  }
  return found;
}

/**
 * Says whether the states of a synchronizer's members at an instant are proven to have held together: each began before each
 * other one ended. Otherwise it names the pair that fails by most.
 * @param {MemberLane[]} lanes of one synchronizer
 * @param {number} at
 */
export function together(lanes, at) {
  const there = [];
  for (const lane of lanes) {
    const s = stateAt(lane, at);
    if (!s) return `not known: no state of ${lane.member} is known at this instant`;
    there.push({ name: lane.member, state: s.state });
  }
  if (there.length < 2) return there.length === 1 ? "one member: its state holds alone" : "no member";
  /** @type {{late: string, early: string, margin: number} | null} */
  let worst = null;
  const late = [...there].sort((a, b) => b.state.started - a.state.started).slice(0, 2);
  const early = [...there].sort((a, b) => a.state.end - b.state.end).slice(0, 2);
  for (const a of late) {
    for (const b of early) {
      if (a === b) continue;
      const margin = b.state.end - a.state.started;
      if (worst === null || margin < worst.margin) worst = { late: a.name, early: b.name, margin };
    }
  }
  if (worst === null) return "no pair";
  if (worst.margin > 0) {
    return `proven: each state began before each other one ended; the closest pair is ${worst.late} before ${worst.early}, by ${milliseconds(worst.margin)}`;
  }
  return `not proven: the state of ${worst.late} began at the latest ${milliseconds(-worst.margin)} after that of ${worst.early} had ended at the earliest`;
}

/** @param {number} ms */
function milliseconds(ms) {
  return ms >= 1000 ? `${(ms / 1000).toFixed(3)} s` : `${ms.toFixed(3)} ms`;
}

/**
 * Members of one synchronizer that have the same state at an instant.
 * @typedef {{key: string, synchronizer: string, text: string, lanes: MemberLane[]}} Alike
 */

/**
 * Groups members by their state at an instant, in the order of the first of them.
 * @param {MemberStates} members
 * @param {MemberLane[]} lanes
 * @param {number} at
 * @returns {Alike[]}
 */
export function alike(members, lanes, at) {
  /** @type {Map<string, Alike>} */
  const groups = new Map();
  for (const lane of lanes) {
    const s = stateAt(lane, lane.known === undefined ? at : lane.known ? lane.seen ?? at : Infinity); // Of a live run: the last status.
    const text = s ? members.text(s.state.row) : "not known";
    const key = JSON.stringify([lane.synchronizer, s ? s.state.row : -1]);
    const group = groups.get(key) ?? { key, synchronizer: lane.synchronizer, text, lanes: [] };
    group.lanes.push(lane);
    groups.set(key, group);
  }
  return [...groups.values()];
}
