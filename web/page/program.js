// @ts-check
import { element, setText, whyLink } from "./dom.js";
import { keyOf, oldSince } from "./model.js";
import { statusLimit } from "./overview.js";

const svgSpace = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node|string)} children
 */
function svg(tag, attributes, ...children) {
  const e = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, String(value));
  e.append(...children);
  return e;
}

/**
 * Tells drawings apart.
 * @param {any} program a programView
 */
function signature(program) {
  const d = program.drawing;
  return JSON.stringify([program.name, d?.width, d?.height, d?.vertices.length]);
}

/** The flow of one program. The drawing is made once; where its constructs stand is changed in place. */
class Flow {
  /** @param {any} s a statusView with a program */
  constructor(s) {
    this.title = element("h2");
    this.old = element("p", { class: "warning", role: "status" });
    this.state = element("p");
    this.list = element("ul", { class: "places" });
    this.root = element("section", {}, this.title, this.old, this.state);
    /** @type {Map<string, {shapes: Element[], title: Element}>} */
    this.places = new Map();
    this.drawing = signature(s.program);
    if (s.program.drawing) this.root.append(element("div", { class: "flow", tabindex: "0", role: "group", "aria-label": `Flow of ${s.program.name}` }, this.draw(s)));
    else this.root.append(element("p", {}, "This program is too large to be drawn here: pegasus program graph draws it."));
    this.root.append(element("h3", {}, "Constructs that were started or wait"), this.list);
  }

  /** @param {any} s */
  draw(s) {
    const d = s.program.drawing;
    const root = svg("svg", { width: d.width, height: d.height, viewBox: `0 0 ${d.width} ${d.height}` });
    for (const e of d.edges) {
      const [x, y] = e.points[e.points.length - 1];
      const [bx, by] = e.points[e.points.length - 2];
      const [dx, dy] = [Math.sign(x - bx), Math.sign(y - by)];
      root.append(svg("polyline", { class: "edge", points: e.points.map((/** @type {number[]} */ p) => p.join(",")).join(" ") }));
      root.append(svg("path", { class: "head", d: `M${x},${y} L${x - 8 * dx - 4 * dy},${y - 8 * dy - 4 * dx} L${x - 8 * dx + 4 * dy},${y - 8 * dy + 4 * dx} z` }));
      if (e.label) root.append(svg("text", { class: "label", x: e.at[0], y: e.at[1], "text-anchor": e.at_is_end ? "end" : "start" }, e.label));
    }
    for (const v of d.vertices) root.append(this.vertex(s, v));
    return root;
  }

  /**
   * @param {any} s
   * @param {any} v
   */
  vertex(s, v) {
    const [left, top] = [v.x - v.width / 2, v.y - v.height / 2];
    const shape = v.shape === "dot" ? svg("circle", { class: "dot", cx: v.x, cy: v.y, r: v.width / 2 })
      : v.shape === "switch" ? svg("path", { class: "shape", d: `M${v.x},${top} L${left + v.width},${v.y} L${v.x},${top + v.height} L${left},${v.y} z` })
      : svg("rect", { class: `shape ${v.shape}`, x: left, y: top, width: v.width, height: v.height });
    const g = svg("g", {}, shape);
    if (v.path) {
      const title = svg("title", {});
      g.append(title);
      /** @type {{shapes: Element[], title: Element}} */
      const place = this.places.get(v.path) ?? { shapes: [], title };
      place.shapes.push(shape);
      this.places.set(v.path, place);
    }
    (v.label ?? []).forEach((/** @type {string} */ line, /** @type {number} */ i) => {
      const text = svg("text", { x: v.x, y: v.y - (15 * (v.label.length - 1)) / 2 + 15 * i + 4, "text-anchor": "middle" }, line);
      const condition = (v.conditions ?? []).find((/** @type {string} */ c) => line === c || line === `JOIN or ${c}`);
      const own = `${s.synchronizer}.`; // A predicate of another synchronizer has no page of this group.
      g.append(condition?.startsWith(own) ? svg("a", { href: whyLink(s.group, s.synchronizer, condition.slice(own.length)) }, text) : text);
    });
    return g;
  }

  /**
   * @param {any} s
   * @param {number} age of the status in milliseconds
   */
  show(s, age) {
    setText(this.title, `${s.program.name}, run by ${s.synchronizer}`);
    setText(this.state, `The program is ${s.program.outcome}.`);
    const old = oldSince(age, statusLimit, new Date());
    setText(this.old, old && `Old values: ${s.synchronizer} has not answered since ${old}.`);
    const places = s.program.places ?? {};
    for (const [path, place] of this.places) {
      const p = places[path] ?? { state: "", text: "not started" };
      for (const shape of place.shapes) shape.setAttribute("data-state", p.state);
      setText(place.title, `${path}: ${p.text}`);
    }
    const rows = Object.keys(places).sort().map((path) => `${path}: ${places[path].text}`);
    while (this.list.children.length > rows.length) this.list.lastElementChild?.remove();
    rows.forEach((text, i) => setText(this.list.children[i] ?? this.list.appendChild(element("li")), text));
  }
}

/** The programs of all synchronizers, as a whole and live. */
export class Programs {
  constructor() {
    this.none = element("p", {}, "No program runs.");
    this.root = element("div", {}, this.none);
    /** @type {Map<string, Flow>} */
    this.flows = new Map();
  }

  /** @param {import("./app.js").State} state */
  show(state) {
    const seen = new Set();
    for (const { view, at } of state.statuses.values()) {
      if (!view.program) continue;
      const key = keyOf(view);
      seen.add(key);
      let flow = this.flows.get(key);
      if (flow?.drawing !== signature(view.program)) {
        flow?.root.remove();
        flow = new Flow(view);
        this.flows.set(key, flow);
        this.root.append(flow.root);
      }
      flow.show(view, state.record ? 0 : performance.now() - at);
    }
    for (const [key, flow] of this.flows) {
      if (seen.has(key)) continue;
      flow.root.remove();
      this.flows.delete(key);
    }
    this.none.hidden = seen.size > 0;
  }
}
