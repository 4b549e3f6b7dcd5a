import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Events, View, layOut, place, oldSince, clock, instant, nextDecision } = await import(pathToFileURL(process.argv[2]));
const { LiveStates, MemberStates, alike, firstAfter, stateAt, together } = await import(new URL("states.js", pathToFileURL(process.argv[2])));

let n = 0;
const event = (time, lane, more) => ({ number: ++n, time, synchronizer: "s", event: "verdict", lane, mark: false, text: "", ...more });
const spans = (lanes, name) => lanes.find((l) => l.lane === name).spans.map((s) => [s.state, s.from, s.to, s.open]);

// A state lasts until the next one of its lane; the last one to the last status.
{
  const list = [
    event(10, "p", { state: "true" }), event(12, "q", { state: "false" }), event(15, "p", { state: "true", mark: true }),
    event(20, "p", { state: "false" }), event(21, "p", { state: "true", synchronizer: "other" }),
  ];
  const lanes = layOut(list, new Map([["s", 30]]));
  assert.deepEqual(lanes.map((l) => [l.synchronizer, l.lane]), [["other", "p"], ["s", "p"], ["s", "q"]]);
  assert.deepEqual(lanes[1].spans, [{ from: 10, to: 20, state: "true", open: false }, { from: 20, to: 30, state: "false", open: true }]);
  assert.deepEqual(lanes[1].marks.map((m) => m.time), [15]);
  assert.deepEqual(spans(lanes, "q"), [["false", 12, 30, true]]);
  assert.deepEqual(lanes[0].spans[0].to, 21, "without a status nothing is known after the event");
}
// A new epoch or a gap ends what is known, of one synchronizer or of all.
{
  const lanes = layOut([
    event(10, "p", { state: "true" }), event(10, "p", { state: "true", synchronizer: "t" }),
    event(20, "epoch", { state: "2", ends: true }), event(25, "messages", { synchronizer: "", ends: true, mark: true }),
  ], new Map([["s", 40], ["t", 40]]));
  assert.deepEqual(lanes.map((l) => [l.synchronizer, l.lane, ...l.spans.map((s) => s.to)]),
    [["", "messages"], ["s", "epoch", 25], ["s", "p", 20], ["t", "p", 25]]);
}
// A clock that goes back makes no span that ends before it begins.
assert.deepEqual(spans(layOut([event(10, "p", { state: "true" }), event(5, "p", { state: "false" })], new Map([["s", 1]])), "p"),
  [["true", 10, 10, false], ["false", 5, 5, true]]);
// What came already is passed over, what is missing is counted and ends what is known.
{
  const e = new Events(1000);
  e.hello("a");
  e.add({ ...event(10, "p", { state: "true" }), number: 1 });
  e.add({ ...event(10, "p", { state: "true" }), number: 1 });
  e.add({ ...event(50, "p", { state: "false" }), number: 5 });
  assert.equal(e.missed, 3);
  assert.deepEqual(e.shown().map((x) => x.text), ["", "3 events are missing here", ""]);
  e.hello("a");
  assert.equal(e.list.length, 3);
  e.hello("b");
  e.add({ ...event(60, "p", { state: "true" }), number: 1 });
  assert.equal(e.list.length, 5);
  assert.deepEqual(spans(layOut(e.shown(), new Map()), "p").map((s) => s.slice(0, 3)), [["true", 10, 50], ["false", 50, 50], ["true", 60, 60]]);
}
// The newest 20,000 are kept.
{
  const e = new Events();
  for (let i = 1; i <= 50_000; i++) e.add({ ...event(i, "p", { state: String(i % 2) }), number: i });
  assert.equal(e.shown().length, 20_000);
  assert.equal(e.shown()[19_999].time, 50_000);
  assert.ok(e.list.length < 22_000 && e.leftOut >= 28_000, `${e.list.length} ${e.leftOut}`);
}
// Every state in view is at least a pixel wide, and inside.
for (const [from, to] of [[0, 0], [500, 500], [500.2, 500.3], [1000, 1000], [-10, 5], [999, 2000], [-10, 2000], [3, 700]]) {
  const at = place({ from, to }, { from: 0, to: 1000, width: 100 });
  assert.ok(at && at.width >= 1 && at.x >= 0 && at.x + at.width <= 100, `${from} to ${to}: ${JSON.stringify(at)}`);
}
assert.deepEqual(place({ from: 250, to: 500 }, { from: 0, to: 1000, width: 100 }), { x: 25, width: 25 });
assert.equal(place({ from: -5, to: -1 }, { from: 0, to: 1000, width: 100 }), null);
assert.equal(place({ from: 1001, to: 1002 }, { from: 0, to: 1000, width: 100 }), null);
// Values are old from the limit on.
const now = new Date(2026, 0, 1, 9, 5, 7);
assert.equal(oldSince(3000, 3000, now), "");
assert.equal(oldSince(5500, 3000, now), "09:05:01, 5 s ago");
assert.equal(clock(now), "09:05:07");
assert.equal(instant(new Date(2026, 0, 1, 9, 5, 7, 4).getTime()), "2026-01-01 09:05:07.004");

// The view: what is under the pointer stays there; at the newest it follows.
{
  const v = new View(1000);
  assert.deepEqual(v.range(5000), { from: 4000, to: 5000 });
  v.zoom(0.5, 0.5);
  assert.deepEqual(v.range(6000), { from: 5500, to: 6000 });
  v.pan(-1, 6000);
  assert.deepEqual(v.range(9000), { from: 5000, to: 5500 });
  v.zoom(2, 0.2); // 5100 is at a fifth.
  assert.deepEqual(v.range(9000), { from: 4900, to: 5900 });
  v.reach(5000, 9000);
  assert.deepEqual(v.range(9000), { from: 4900, to: 5900 });
  v.reach(100, 9000);
  assert.deepEqual(v.range(9000), { from: -650, to: 350 });
  v.pan(100, 9000);
  assert.equal(v.to, null);
  for (let i = 0; i < 100; i++) v.zoom(0.1, 0.5);
  assert.equal(v.wide, 1);
  for (let i = 0; i < 100; i++) v.zoom(10, 0.5);
  assert.equal(v.wide, 7 * 24 * 3600 * 1000);
}

// Decisions before and behind an instant: marks of predicates alone.
{
  const list = [event(10, "predicate p", { mark: true }), event(15, "member m", { mark: true }), event(20, "predicate q", { mark: true }), event(25, "predicate q", {})];
  assert.equal(nextDecision(list, 0, 1), 11);
  assert.equal(nextDecision(list, 11, 1), 21);
  assert.equal(nextDecision(list, 21, 1), null);
  assert.equal(nextDecision(list, 21, -1), 11);
  assert.equal(nextDecision(list, 11, -1), null);
}

// The states of members: at an instant, together, and alike.
{
  const lane = (member, states) => ({ synchronizer: "s", host: "h", member, states });
  const row = (phase, load) => ({ names: ["load", "phase"], values: [load, phase] });
  const members = new MemberStates({
    left_out: 7, rows: [row("idle", "0"), row("busy", "0"), { names: ["other"], values: ["1"] }],
    // Began, not before and not after; ended, alike; open; row.
    lanes: [lane("a", [0, 2000, 10000, 12000, 0, 0, 10000, 12000, 20000, 20000, 1, 1]), lane("b", [5000, 5000, 11000, 11000, 0, 0, 11000, 11000, 21000, 21000, 1, 1]), lane("c", [30000, 31000, 40000, 41000, 0, 2])],
  }, 1000);
  assert.equal(members.leftOut, 7);
  assert.equal(members.firstField(), "phase");
  assert.deepEqual(members.value(1, "phase"), { text: "busy", number: 1 });
  assert.equal(members.value(2, "phase"), null);
  assert.equal(members.text(0), "load=0 phase=idle");
  const [a, b, c] = members.lanes;
  assert.deepEqual(a.states[0], { start: 1000, started: 1002, end: 1010, ended: 1012, open: false, row: 0 });
  assert.equal(firstAfter(a.states, 1011), 0);
  assert.equal(firstAfter(a.states, 1012), 1);
  assert.equal(firstAfter(c.states, 1041), 1);
  const at = (l, t) => { const s = stateAt(l, t); return s && [s.state.row, s.certain]; };
  assert.deepEqual([999, 1001, 1002, 1010, 1011, 1012, 1019, 9999].map((t) => at(a, t)), [null, [0, false], [0, true], [0, true], [0, false], [1, true], [1, true], [1, false]]);
  assert.equal(at(c, 1042), null);
  assert.equal(together([a, b], 1006), "proven: each state began before each other one ended; the closest pair is b before a, by 5.000 ms");
  // The state of a began at the latest at 1012, that of b had ended at the earliest at 1011.
  assert.equal(together([{ ...a, states: [a.states[1]] }, b], 1010.9), "not proven: the state of a began at the latest 1.000 ms after that of b had ended at the earliest");
  assert.equal(together([a, b, c], 1006), "not known: no state of c is known at this instant");
  assert.equal(together([a], 1006), "one member: its state holds alone");
  assert.equal(together([], 1006), "no member");
  assert.deepEqual(alike(members, members.lanes, 1006).map((g) => [g.text, g.lanes.map((l) => l.member).join()]), [["load=0 phase=idle", "a,b"], ["not known", "c"]]);
}

// The states of a live run: a frame replaces the states of a lane from a number on.
{
  const lane = (member, first, states, more) => ({ group: "g", synchronizer: "s", host: "h", member, first, states, seen: 500_000, known: true, ...more });
  const frame = (lanes, more) => ({ from: 1000, all: false, unseen: 0, left_out: 0, rows: [{ names: ["v"], values: ["x"] }, { names: ["v"], values: ["y"] }], lanes, ...more });
  const live = new LiveStates();
  live.update(frame([lane("b", 0, [0, 1000, 5000, 5000, 1, 1]), lane("a", 4, [0, 1000, 5000, 5000, 1, 0])], { all: true }));
  assert.deepEqual(live.lanes.map((l) => l.member), ["a", "b"]);
  live.update(frame([lane("a", 4, [0, 1000, 6000, 7000, 0, 0, 6000, 7000, 9000, 9000, 1, 1])], { unseen: 3, left_out: 2 }));
  const [a, b] = live.lanes;
  assert.deepEqual(a.states.map((s) => [s.start, s.started, s.end, s.ended, s.open, live.text(s.row)]), [[1000, 1001, 1006, 1007, false, "v=x"], [1006, 1007, 1009, 1009, true, "v=y"]]);
  assert.deepEqual([live.unseen, live.leftOut, a.seen], [3, 2, 1500]);
  // Alike by the state that the last status has shown; a member that it has not shown is not known.
  assert.deepEqual(alike(live, live.lanes, 0).map((g) => [g.text, g.lanes.length]), [["v=y", 2]]);
  live.update(frame([lane("b", 0, [0, 1000, 5000, 5000, 0, 1], { known: false })]));
  assert.deepEqual(alike(live, live.lanes, 0).map((g) => g.text), ["v=y", "not known"]);
  live.update(frame([lane("a", 90, [0, 1000, 6000, 7000, 0, 0])])); // States between are not here.
  assert.deepEqual([a.states.length, a.first], [1, 90]);
  live.update(frame([lane("c", 0, [0, 1000, 5000, 5000, 1, 1])], { all: true })); // The stream was opened again.
  assert.deepEqual([live.lanes.map((l) => l.member), live.rows.length], [["c"], 2]);
}

// They are bounded: states, lanes, and rows.
{
  const live = new LiveStates(100);
  for (let i = 0; i < 5000; i++) {
    live.update({ from: 0, all: false, unseen: 0, left_out: 0, rows: [{ names: ["v"], values: [String(i)] }],
      lanes: [{ group: "g", synchronizer: "s", host: "h", member: "a", first: i, states: [i, i, i + 1, i + 1, 0, 0], seen: i, known: true }] });
    assert.ok(live.lanes[0].states.length <= 101 && live.rows.length <= 1300);
  }
  assert.equal(live.leftOut, 5000 - live.lanes[0].states.length);
  assert.equal(live.value(live.lanes[0].states.at(-1).row, "v").text, "4999");
  for (let i = 0; i < 2010; i++) {
    live.update({ from: 0, all: false, unseen: 0, left_out: 0, rows: [{ names: ["v"], values: ["1"] }],
      lanes: [{ group: "g", synchronizer: "s", host: "h", member: `m${i}`, first: 0, states: [1, 1, 2, 2, 0, 0], seen: 10_000 + i, known: true }] });
  }
  assert.equal(live.lanes.length, 2000);
}

// A picture has texts as texts. It is XML, whatever the texts are, and has each drawing once.
{
  const { SvgContext, escapeText, svgFile } = await import(new URL("svg.js", pathToFileURL(process.argv[2])));
  assert.equal(escapeText("a<b onerror=\"x\">'&amp;\u0000\u001b\ud800\ufffe\u{1f600}"), "a&#60;b onerror=&#34;x&#34;&#62;&#39;&#38;amp;\ufffd\ufffd\ufffd\ufffd\u{1f600}");
  const c = new SvgContext(10, 20, "#fff", (text) => 6 * text.length);
  c.fillStyle = '#000"/><script>';
  for (let i = 0; i < 3; i++) c.fillRect(1, 2, 3, 4);
  c.fillText("<b>", 0, 5);
  c.fillText("too wide", 0, 15, 20);
  c.textAlign = "right";
  c.fillText("1", 100, 5);
  assert.equal(c.parts.size, 4);
  const text = svgFile([...c.parts], 200, 100, "#fff");
  assert.ok(!text.includes("<script") && !text.includes("<b>"));
  assert.match(text, /<rect x="11" y="22" width="3" height="4" /);
  assert.match(text, /x="10" y="35" textLength="20"/);
  assert.match(text, /x="104" y="25" textLength="6"/);
}
console.log("ok");
