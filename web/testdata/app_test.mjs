// Runs the scripts of the page on a document that keeps elements and texts, and prints what the page shows.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

class Text {
  constructor(text) {
    this.textContent = text;
  }
}

class Element {
  constructor(tag) {
    this.tag = tag;
    this.nodes = [];
    this.attributes = new Map();
    this.dataset = {};
    this.style = {};
    this.hidden = false;
    this.clientWidth = 1000;
    this.value = "";
    this.checked = false;
    this.parent = null;
    const classes = new Set();
    this.classList = { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)), contains: (name) => classes.has(name) };
  }
  get className() { return this.attributes.get("class") ?? ""; }
  set className(c) { this.attributes.set("class", c); }
  get children() { return this.nodes.filter((n) => n instanceof Element); }
  get firstElementChild() { return this.children[0] ?? null; }
  get lastElementChild() { return this.children.at(-1) ?? null; }
  get textContent() { return this.nodes.map((n) => n.textContent).join(""); }
  set textContent(text) { this.nodes = [new Text(text)]; }
  append(...nodes) {
    for (const n of nodes) {
      const node = typeof n === "string" ? new Text(n) : n;
      node.parent = this;
      this.nodes.push(node);
    }
  }
  appendChild(node) { this.append(node); return node; }
  replaceChildren(...nodes) { this.nodes = []; this.append(...nodes); }
  remove() { this.parent.nodes = this.parent.nodes.filter((n) => n !== this); }
  setAttribute(name, value) { this.attributes.set(name, value); }
  removeAttribute(name) { this.attributes.delete(name); }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  getContext() {
    return {
      setTransform() {}, clearRect(x, y, w, h) { drawn.splice(0, drawn.length, ...drawn.filter((d) => d.y > h)); },
      fillRect(x, y, w, h) { drawn.push({ x, y, w, h, colour: this.fillStyle }); },
      fillText(text, x, y) { drawn.push({ text, x, y }); },
    };
  }
}

const drawn = [];
const main = new Element("main"), cursor = new Element("div"), search = new Element("input"), save = new Element("button"), saveSvg = new Element("button"), connection = new Element("p"), links = ["#overview", "#timeline", "#work"].map((h) => {
  const a = new Element("a");
  a.setAttribute("href", h);
  return a;
});
const listeners = {}, intervals = [], timeouts = [], frames = [], stored = new Map(), fetched = [];
let stream, now = 100_000, answer;
Object.assign(globalThis, {
  document: {
    createElement: (tag) => new Element(tag), getElementById: (id) => ({ main, connection, cursor, search, save, "save-svg": saveSvg })[id], querySelectorAll: () => links,
    body: new Element("body"), documentElement: new Element("html"),
  },
  window: { devicePixelRatio: 2 },
  location: { hash: "#key=K%20Y", pathname: "/blue/" },
  history: { replaceState: (_, __, url) => { location.hash = url; } },
  localStorage: { getItem: (k) => stored.get(k) ?? null, setItem: (k, v) => stored.set(k, v) },
  getComputedStyle: () => ({ getPropertyValue: (name) => ` ${name} ` }),
  requestAnimationFrame: (f) => frames.push(f),
  addEventListener: (name, f) => { listeners[name] = f; },
  setInterval: (f) => intervals.push(f),
  setTimeout: (f, ms) => timeouts.push({ f, ms }),
  fetch: async (url) => { fetched.push(url); return answer; },
  EventSource: class {
    static CLOSED = 2;
    readyState = 1;
    constructor(url) {
      this.url = url;
      stream = this;
    }
  },
});
globalThis.performance.now = () => now;

const settle = async () => {
  for (let i = 0; i < 10; i++) await null;
  for (const f of frames.splice(0)) f();
};
const send = async (frame) => { stream.onmessage({ data: JSON.stringify(frame) }); await settle(); };
const tick = async (ms) => { now += ms; intervals.forEach((f) => f()); await settle(); };
const go = async (hash) => { location.hash = hash; listeners.hashchange(); await settle(); };
const find = (e, test) => [...(test(e) ? [e] : []), ...e.children.flatMap((c) => find(c, test))];
const rows = (e = main) => find(e, (x) => x.tag === "tr").map((tr) => tr.children.map((td) => td.textContent));
const has = (text, part) => assert.ok(text.includes(part), `no ${part} in: ${text}`);

await import(pathToFileURL(process.argv[2]));
await settle();
assert.equal(stream.url, "stream?key=K%2520Y");
assert.equal(location.hash, "#overview", "the key stays in the address");
has(main.textContent, "No synchronizer has answered yet.");
await tick(500);
has(connection.textContent, "The stream stopped at ");

// The values of a run, made by package web; texts with markup stay texts.
const [status, why] = readFileSync(process.argv[3], "utf8").trim().split("\n").map((line) => JSON.parse(line));
await send({ kind: "reading", text: "reading x: 5 % of 70 MiB" });
stream.onerror(); // The page ends this stream.
await tick(500);
assert.equal(connection.textContent, "reading x: 5 % of 70 MiB");
await tick(7000);
has(connection.textContent, "The stream stopped at ");
await send({ kind: "hello", page: "a", oldest: 1, dropped: 2 });
await send(status);
await tick(500);
has(connection.textContent, "Live, ");
has(connection.textContent, "2 slow browsers were dropped");
let text = main.textContent;
for (const part of ["no epoch", "process 7 on \"host\"", "process 8 on \"host\", warm", "Waits: w2: silent for 4s", "and 1 more, not shown", "g/1/2"]) has(text, part);
const nasty = "<img src=x onerror=alert(1)>\"'\u2028\n\u0000";
assert.deepEqual(rows().find((r) => r[0] === nasty).slice(1, 3), ["true", "1.5s"]);
assert.deepEqual(find(main, (e) => e.tag === "img"), []);
const link = find(main, (e) => e.tag === "a" && e.textContent === nasty)[0];
assert.equal(rows().filter((r) => r[0] === "w2")[0].join("|"), "w2|h|in the epoch|silent for 4s|synchronized by ntp|±1ms|load=9007199254740993|");
// A second status changes the cells in place.
await send({ ...status, predicates: [], members: status.members.slice(0, 1) });
assert.equal(find(main, (e) => e.textContent === nasty && e.tag === "a").length, 1, "the link of the last decision alone");
await send(status);

// Another group may have a synchronizer of the same name.
await send({ ...status, group: "others", epoch: "epoch 77" });
has(main.textContent, "epoch 77");
has(main.textContent, "no epoch");
assert.equal(main.children[0].children.length, 3);

// Values grow old: first those of a synchronizer, then all.
const section = find(main, (e) => e.tag === "section" && e.textContent.includes("no epoch"))[0];
await send({ kind: "alive" });
assert.equal(section.classList.contains("old"), false);
await tick(2000);
await send({ kind: "alive" });
await tick(1500);
has(main.textContent, "Old values: g has not answered since ");
assert.equal(section.classList.contains("old"), true);
has(connection.textContent, "Live, ");
await tick(6000);
has(connection.textContent, "The stream stopped at ");
has(connection.textContent, "7 s ago");
assert.equal(document.body.classList.contains("stopped"), true);
await send({ ...status, age: 60_000 });
has(main.textContent, "60 s ago");
await send(status);
assert.equal(section.classList.contains("old"), false);
stream.readyState = 0;
stream.onerror();
await tick(1);
has(connection.textContent, "The stream stopped at ");
stream.readyState = 2;
stream.onerror();
await tick(1);
has(connection.textContent, "The page was refused ");
const first = stream;
timeouts.splice(0).forEach((t) => t.f());
assert.notEqual(stream, first, "it does not connect again");

// The timeline: a state of a millisecond is drawn, the newest event is listed.
await go("#timeline");
assert.equal(links[1].getAttribute("aria-current"), "page");
assert.equal(links[0].getAttribute("aria-current"), null);
const event = (number, time, state, more) => (now += 200) && send({ kind: "event", number, time, synchronizer: "g", event: "verdict", lane: "predicate p", state, mark: false, text: `p is ${state}`, ...more });
const t = status.time;
await event(1, t - 30_000, "false");
await event(2, t - 20_000, "true", { mark: true });
await event(3, t - 19_999, "unknown");
await event(4, t - 10_000, "false", { text: nasty });
has(drawn.map((d) => d.text).filter(Boolean).join(" "), "g predicate p");
const bars = drawn.filter((d) => d.colour === "--true");
assert.equal(bars.length, 1);
assert.ok(bars[0].w >= 1 && bars[0].x > 220 && bars[0].x + bars[0].w <= 1000, JSON.stringify(bars));
assert.equal(drawn.filter((d) => d.colour === "--mark").length, 1);
const last = drawn.filter((d) => d.colour === "--false").at(-2);
assert.ok(Math.abs(last.x + last.w - 1000) <= 1, `an open state reaches to the last status: ${JSON.stringify(last)}`);
assert.equal(rows(find(main, (e) => e.className === "table wide").at(-1))[1][2], nasty);
has(main.textContent, "4 events");
now -= 199; // Events that come at once are drawn together.
await event(5, t - 9_000, "false");
has(main.textContent, "4 events");
await tick(500);
has(main.textContent, "5 events");
find(main, (e) => e.tag === "input")[0].checked = true;
await event(6, t, "true");
has(main.textContent, "5 events");

// Why, by the link of the overview.
answer = { ok: true, json: async () => why };
await go(link.getAttribute("href"));
await settle();
assert.deepEqual([...new URL(fetched.at(-1), "http://x/").searchParams], [["group", "workers"], ["synchronizer", "g"], ["predicate", nasty], ["key", "K%20Y"]]);
text = main.textContent;
for (const part of [`g: ${nasty} is unknown for 2s`, "hold time 1s", "There is no decision yet.", "w1 is silent"]) has(text, part);
assert.deepEqual(rows().find((r) => r[0] === "\u2003.load > 1"), ["\u2003.load > 1", "1 to 3", "2: w1, w2", "", "1: w3", "a report is lost"]);
answer = { ok: false, text: async () => "synchronizer \"g\" has gone" };
now += 5000;
timeouts.splice(0).forEach((x) => x.f());
await settle();
has(main.textContent, "Old values: the last answer came ");
has(main.textContent, "synchronizer \"g\" has gone");
assert.equal(timeouts.length, 1, "it does not ask again");
await go("#overview");
timeouts.splice(0).forEach((x) => x.f());
await settle();
assert.equal(timeouts.length, 0, "it asks on after its end");
await go("#why/w/%E0%A4%A/x"); // No URL of ours.
has(main.textContent, "Why x");
console.log("ok");
