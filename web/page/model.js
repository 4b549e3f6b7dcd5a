// @ts-check
// The model of the timeline. It touches no document, so that tests run it alone.

/**
 * An event as the stream has it.
 * @typedef {{number: number, time: number, synchronizer: string, event: string, lane: string,
 *   state?: string, mark: boolean, ends?: boolean, text: string}} PageEvent
 * A state of a lane. An open one has not ended as far as is known.
 * @typedef {{from: number, to: number, state: string, open: boolean}} Span
 * @typedef {{time: number, event: string, text: string}} Mark
 * @typedef {{synchronizer: string, lane: string, spans: Span[], marks: Mark[]}} Lane
 */

/** The newest events, at most limit of them. */
export class Events {
  /** @param {number} limit */
  constructor(limit = 20000) {
    this.limit = limit;
    /** @type {PageEvent[]} */
    this.list = [];
    this.leftOut = 0; // older events
    this.missed = 0; // events that the stream did not bring
    this.last = 0; // number of the newest
    this.page = "";
  }

  /**
   * Begins a stream. A page that was started again counts from 1 again.
   * @param {string} page
   */
  hello(page) {
    if (page !== this.page) {
      if (this.page !== "") this.end("the page was started again: events before are missing");
      this.page = page;
      this.last = 0;
    }
  }

  /** @param {PageEvent} e */
  add(e) {
    if (e.number <= this.last) return; // The stream was opened again.
    if (e.number > this.last + 1) {
      const n = e.number - this.last - 1;
      this.missed += n;
      this.end(`${n} events are missing here`, e.time);
    }
    this.last = e.number;
    this.push(e);
  }

  /**
   * Says that nothing is known from here on.
   * @param {string} text
   * @param {number} [time]
   */
  end(text, time) {
    const newest = this.list.length > 0 ? this.list[this.list.length - 1].time : 0;
    this.push({
      number: 0, time: time ?? newest, synchronizer: "", event: "notice", lane: "messages", mark: true, ends: true, text,
    });
  }

  /** @param {PageEvent} e */
  push(e) {
    this.list.push(e);
    const cut = this.list.length - this.limit;
    if (cut >= this.limit / 10) { // Not one by one, which would move the list each time.
      this.list.splice(0, cut);
      this.leftOut += cut;
    }
  }

  /** The events to show, oldest first. */
  shown() {
    return this.list.length > this.limit ? this.list.slice(-this.limit) : this.list;
  }
}

/**
 * The key of a synchronizer: another group may have one of the same name.
 * @param {{group: string, synchronizer: string}} view
 */
export function keyOf(view) {
  return JSON.stringify([view.synchronizer, view.group]);
}

/**
 * Sorts events into lanes. An open state reaches to the last status of its synchronizer.
 * @param {PageEvent[]} events
 * @param {Map<string, number>} statuses time of the last status, by synchronizer
 * @returns {Lane[]}
 */
export function layOut(events, statuses) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  /** @type {Map<string, Span>} */
  const open = new Map();
  for (const e of events) {
    if (e.ends) {
      for (const [key, span] of open) {
        const lane = lanes.get(key);
        if (e.synchronizer !== "" && lane && lane.synchronizer !== e.synchronizer) continue;
        end(span, e.time);
        open.delete(key);
      }
    }
    const key = JSON.stringify([e.synchronizer, e.lane]);
    let lane = lanes.get(key);
    if (!lane) {
      lane = { synchronizer: e.synchronizer, lane: e.lane, spans: [], marks: [] };
      lanes.set(key, lane);
    }
    if (e.mark) lane.marks.push({ time: e.time, event: e.event, text: e.text });
    if (!e.state) continue;
    const before = open.get(key);
    if (before && before.state === e.state) continue;
    if (before) end(before, e.time);
    const span = { from: e.time, to: e.time, state: e.state, open: true };
    lane.spans.push(span);
    open.set(key, span);
  }
  for (const [key, span] of open) {
    const lane = lanes.get(key);
    if (lane) span.to = Math.max(span.from, statuses.get(lane.synchronizer) ?? span.from);
  }
  return [...lanes.values()].sort((a, b) => compare(a.synchronizer, b.synchronizer) || compare(a.lane, b.lane));
}

/**
 * @param {Span} span
 * @param {number} time
 */
function end(span, time) {
  span.to = Math.max(span.from, time);
  span.open = false;
}

/** @param {string} a @param {string} b */
function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Where a span is drawn: at least one pixel wide. It returns null if the span lies outside.
 * @param {{from: number, to: number}} span
 * @param {{from: number, to: number, width: number}} view
 * @returns {{x: number, width: number} | null}
 */
export function place(span, view) {
  if (span.to < view.from || span.from > view.to) return null;
  const scale = view.width / Math.max(1, view.to - view.from);
  const left = Math.max(0, Math.floor((span.from - view.from) * scale));
  const right = Math.min(view.width, Math.ceil((span.to - view.from) * scale));
  const x = Math.min(left, view.width - 1);
  return { x, width: Math.max(1, right - x) };
}

/**
 * Says since when a value is old; empty while it is not.
 * @param {number} age in milliseconds
 * @param {number} limit the same
 * @param {Date} now
 */
export function oldSince(age, limit, now) {
  if (age <= limit) return "";
  const seconds = Math.floor(age / 1000);
  return `${clock(new Date(now.getTime() - age))}, ${seconds} s ago`;
}

/** @param {Date} t */
export function clock(t) {
  return [t.getHours(), t.getMinutes(), t.getSeconds()].map((n) => String(n).padStart(2, "0")).join(":");
}

/**
 * An instant with milliseconds, such as 2026-01-02 03:04:05.678.
 * @param {number} at in milliseconds since 1970
 */
export function instant(at) {
  const t = new Date(at);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock(t)}.${String(t.getMilliseconds()).padStart(3, "0")}`;
}

/**
 * The instant from which on the decision before or behind an instant has been made; null if there is none. The time of an event was
 * cut to milliseconds, so the instant is one later.
 * @param {PageEvent[]} events
 * @param {number} at
 * @param {number} step -1: before, 1: behind
 * @returns {number | null}
 */
export function nextDecision(events, at, step) {
  let best = null;
  for (const e of events) {
    if (!e.mark || !e.lane.startsWith("predicate ")) continue;
    const t = e.time + 1;
    if ((t - at) * step <= 0) continue;
    if (best === null || (best - t) * step > 0) best = t;
  }
  return best;
}

const leastWide = 1, mostWide = 7 * 24 * 3600 * 1000; // milliseconds

/** The part of the time that is drawn. */
export class View {
  /** @param {number} wide in milliseconds */
  constructor(wide) {
    this.wide = wide;
    /** @type {number | null} */
    this.to = null; // where it ends; null: it follows the newest
  }

  /**
   * @param {number} newest
   * @returns {{from: number, to: number}}
   */
  range(newest) {
    const to = this.to ?? newest;
    return { from: to - this.wide, to };
  }

  /**
   * Widens the view by a factor. The instant at a share of it stays where it is; the end stays while it follows.
   * @param {number} factor
   * @param {number} share 0: the beginning, 1: the end
   */
  zoom(factor, share) {
    const wide = Math.min(mostWide, Math.max(leastWide, this.wide * factor));
    if (this.to !== null) this.to += (wide - this.wide) * (1 - share);
    this.wide = wide;
  }

  /**
   * Moves the view by a share of it.
   * @param {number} share less than 0: to earlier times
   * @param {number} newest
   */
  pan(share, newest) {
    const to = (this.to ?? newest) + share * this.wide;
    this.to = to >= newest ? null : to;
  }

  /**
   * Has an instant be in the view.
   * @param {number} at
   * @param {number} newest
   */
  reach(at, newest) {
    const { from, to } = this.range(newest);
    if (at < from || at > to) this.to = at + this.wide / 4;
  }
}
