// @ts-check
// The states of members of a run that is over. It touches no document, so that tests run it alone.

/**
 * A state. It began between start and started, and ended between end and ended. An open one had not ended when the run did.
 * Times are in milliseconds since 1970.
 * @typedef {{start: number, started: number, end: number, ended: number, open: boolean, row: number}} MemberState
 * @typedef {{synchronizer: string, host: string, member: string, states: MemberState[]}} MemberLane
 * @typedef {{names: string[], values: string[]}} Row
 */

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
    for (const row of this.rows) {
      row.names.forEach((name, i) => {
        const values = this.fields.get(name) ?? new Map();
        if (!values.has(row.values[i])) values.set(row.values[i], values.size);
        this.fields.set(name, values);
      });
    }
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
    const s = stateAt(lane, at);
    const text = s ? members.text(s.state.row) : "not known";
    const key = JSON.stringify([lane.synchronizer, s ? s.state.row : -1]);
    const group = groups.get(key) ?? { key, synchronizer: lane.synchronizer, text, lanes: [] };
    group.lanes.push(lane);
    groups.set(key, group);
  }
  return [...groups.values()];
}
