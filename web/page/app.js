// @ts-check
import { element, setText } from "./dom.js";
import { Events, clock, keyOf, oldSince } from "./model.js";
import { Overview } from "./overview.js";
import { Timeline } from "./timeline.js";
import { Why } from "./why.js";

/**
 * What the stream has brought. A status came at an instant of performance.now; its key is
 * that of keyOf.
 * @typedef {{statuses: Map<string, {view: any, at: number}>, events: Events}} State
 */

/** @type {State} */
const state = { statuses: new Map(), events: new Events() };

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

/** @type {{root: HTMLElement, show: (state: State) => void, close?: () => void}} */
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

function route() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  page.close?.();
  if (name === "why" && rest.length === 3) {
    page = new Why(decode(rest[0]), decode(rest[1]), decode(rest[2]), key);
  } else if (name === "timeline") {
    page = new Timeline();
  } else {
    page = new Overview();
  }
  for (const a of document.querySelectorAll("nav a")) {
    if (a.getAttribute("href") === `#${name || "overview"}`) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  main.replaceChildren(page.root);
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
    if (frame.kind === "hello") {
      state.events.hello(frame.page);
      dropped = frame.dropped;
    } else if (frame.kind === "status") {
      state.statuses.set(keyOf(frame), { view: frame, at: performance.now() - frame.age });
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
  else setText(connection, stopped ? `The stream stopped at ${since}: all values are of then` : `Live, ${clock(new Date())}${slow}`);
  document.body.classList.toggle("stopped", stopped);
  draw();
}

addEventListener("hashchange", route);
route();
connect();
setInterval(check, 500);
