// @ts-check
import { Cursor } from "./cursor.js";
import { element, setText } from "./dom.js";
import { Events, clock, keyOf, oldSince } from "./model.js";
import { Overview } from "./overview.js";
import { Programs } from "./program.js";
import { saveSvg, saveView } from "./save.js";
import { LiveStates, MemberStates } from "./states.js";
import { Timeline } from "./timeline.js";
import { Why } from "./why.js";
import { Work } from "./work.js";

/**
 * What the stream has brought. A status came at an instant of performance.now; its key is
 * that of keyOf. Of a run that is over, record is its time, at is the instant that is shown, both
 * in milliseconds since 1970, and members are the states of members, null until they have come. Of a live run, members grow. With a token the page may change the run. Lanes and rows are shown whose name contains search.
 * @typedef {{statuses: Map<string, {view: any, at: number}>, events: Events, record: {from: number, to: number} | null, at: number, members: MemberStates | null, search: string, token: string}} State
 */

/** @type {State} */
const state = { statuses: new Map(), events: new Events(), record: null, at: 0, members: null, search: "", token: "" };

// The key of the page stands behind #key= in the URL that was printed. It stays in this browser.
const place = `pegasus key ${location.pathname}`;
if (location.hash.startsWith("#key=")) {
  localStorage.setItem(place, location.hash.slice("#key=".length));
  history.replaceState(null, "", "#overview");
}
const key = localStorage.getItem(place) ?? "";

const streamLimit = 6000; // milliseconds without a frame
const connection = /** @type {HTMLElement} */ (document.getElementById("connection"));
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let lastFrame = performance.now();
let connected = false;
let dropped = 0;
let refused = false;
let reading = ""; // how far the run is read
const cursor = new Cursor((at) => show(at, true));
/** @type {HTMLElement} */ (document.getElementById("cursor")).append(cursor.root);

const search = /** @type {HTMLInputElement} */ (document.getElementById("search"));
search.oninput = () => {
  state.search = search.value;
  draw();
};

/** @type {HTMLElement} */ (document.getElementById("save")).onclick = () => saveView().catch((e) => cursor.fault(`the page was not saved: ${e}`));

/** @type {HTMLElement} */ (document.getElementById("save-svg")).onclick = () => saveSvg(page.paint?.bind(page));

/** @type {{root: HTMLElement, paint?: (c: any) => void, show: (state: State) => void, ask?: (at: number) => void, jump?: (step: number) => void, close?: () => void}} */
let page = { root: element("div"), show() {} };
let wanted = false;

/** Draws the page soon, and once for all that came meanwhile. */
function draw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    page.show(state);
  });
}

/**
 * Shows an instant of a run that is over, and writes it into the address.
 * @param {number} at
 * @param {boolean} write
 */
async function show(at, write) {
  if (!state.record) return;
  state.at = Math.min(state.record.to, Math.max(state.record.from, Math.round(at)));
  cursor.show(state);
  if (write) history.replaceState(null, "", `${location.hash.split("?")[0] || "#overview"}?at=${state.at}`);
  page.ask?.(state.at);
  draw();
  const asked = state.at;
  let text = "";
  try {
    const r = await fetch(`status?${new URLSearchParams({ key, at: String(asked) })}`);
    if (!r.ok) text = await r.text();
    else if (asked === state.at) {
      state.statuses = new Map((await r.json()).map((/** @type {any} */ view) => [keyOf(view), { view, at: performance.now() }]));
    }
  } catch (e) {
    text = `the page does not answer: ${e}`;
  }
  if (asked === state.at) cursor.fault(text);
  draw();
}

/**
 * Asks for the states of members of a run that is over.
 * @param {number} from its beginning
 */
async function askStates(from) {
  try {
    const r = await fetch(`states?${new URLSearchParams({ key })}`);
    if (r.ok) state.members = new MemberStates(await r.json(), from);
    else cursor.fault(await r.text());
  } catch (e) {
    cursor.fault(`the states of members did not come: ${e}`);
  }
  draw();
}

function route() {
  const [place, query] = location.hash.slice(1).split("?");
  const [name, ...rest] = place.split("/");
  const at = Number(new URLSearchParams(query).get("at"));
  page.close?.();
  if (name === "why" && rest.length === 3) {
    page = new Why(decode(rest[0]), decode(rest[1]), decode(rest[2]), key, state.record ? state.at : 0);
  } else if (name === "timeline") {
    page = new Timeline((at) => show(at, true), draw);
  } else if (name === "program") {
    page = new Programs();
  } else if (name === "work") {
    page = new Work(key);
  } else {
    page = new Overview(key);
  }
  for (const a of document.querySelectorAll("nav a")) {
    if (a.getAttribute("href") === `#${name || "overview"}`) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  main.replaceChildren(page.root);
  if (at > 0 && at !== state.at) show(at, false);
  else if (state.record) history.replaceState(null, "", `#${place}?at=${state.at}`);
  draw();
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function connect() {
  const source = new EventSource(`stream?${new URLSearchParams({ key })}`);
  source.onmessage = (message) => {
    const frame = JSON.parse(message.data);
    connected = true;
    refused = false;
    lastFrame = performance.now();
    reading = frame.kind === "reading" ? frame.text : "";
    if (frame.kind === "hello") {
      state.events.hello(frame.page);
      dropped = frame.dropped;
      state.token = frame.control ?? "";
      if (frame.record && !state.record) {
        state.record = frame.record;
        askStates(frame.record.from);
        show(Number(new URLSearchParams(location.hash.split("?")[1]).get("at")) || frame.record.to, true);
      }
    } else if (frame.kind === "status" && !state.record) {
      state.statuses.set(keyOf(frame), { view: frame, at: performance.now() - frame.age });
    } else if (frame.kind === "states" && !state.record) {
      const live = state.members instanceof LiveStates ? state.members : new LiveStates();
      state.members = live;
      live.update(frame);
    } else if (frame.kind === "event") {
      state.events.add(frame);
    }
    draw();
  };
  source.onerror = () => {
    connected = false;
    if (source.readyState !== EventSource.CLOSED) return; // The browser connects again.
    refused = true;
    setTimeout(connect, 3000);
  };
}

function check() {
  const age = performance.now() - lastFrame;
  const stopped = !connected || age > streamLimit;
  const slow = dropped > 0 ? `; ${dropped} slow browsers were dropped` : "";
  const since = oldSince(age, -1, new Date());
  if (refused) setText(connection, `The page was refused ${since}: open the URL that pegasus ui printed, or close other tabs`);
  else if (reading && age <= streamLimit) setText(connection, reading);
  else if (state.record) setText(connection, stopped ? `The page stopped at ${since}` : "A recorded run");
  else setText(connection, stopped ? `The stream stopped at ${since}: all values are of then` : `Live, ${clock(new Date())}${slow}`);
  document.body.classList.toggle("stopped", stopped && (!reading || age > streamLimit));
  draw();
}

/**
 * Goes to the next decision, or the one before.
 * @param {KeyboardEvent} e
 */
function jump(e) {
  const step = { n: 1, p: -1 }[e.key];
  const inText = e.target instanceof HTMLInputElement && e.target.type !== "range" && e.target.type !== "checkbox" || e.target instanceof HTMLSelectElement;
  if (!step || inText || e.ctrlKey || e.altKey || e.metaKey) return;
  if (state.record) cursor.go(step);
  else page.jump?.(step);
}

addEventListener("keydown", jump);
addEventListener("hashchange", route);
route();
connect();
setInterval(check, 500);
