// @ts-check
// Makes a picture of what the page shows: texts and drawings, without the controls. It has no script, and asks for nothing.

/**
 * Makes XML of a text of the run. The result has no markup.
 * @param {string} text
 */
export function escapeText(text) {
  return text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD") // XML has no place for these.
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** @param {number} n */
function number(n) {
  return String(Math.round(n * 100) / 100);
}

/**
 * Takes the calls of a drawing on a canvas, and makes SVG of them. What is drawn twice in the same place is there once.
 */
export class SvgContext {
  /**
   * @param {number} x where the drawing is
   * @param {number} y
   * @param {string} back the colour of the background
   * @param {(text: string) => number} measure how wide a text is
   */
  constructor(x, y, back, measure) {
    this.x = x;
    this.y = y;
    this.back = back;
    this.measure = measure;
    this.fillStyle = this.font = this.textBaseline = "";
    this.textAlign = "left";
    /** @type {Set<string>} */
    this.parts = new Set();
  }

  setTransform() {}

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  clearRect(x, y, width, height) {
    this.parts.add(this.rect(x, y, width, height, this.back));
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    this.parts.add(this.rect(x, y, width, height, this.fillStyle));
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} colour */
  rect(x, y, width, height, colour) {
    return `<rect x="${number(x + this.x)}" y="${number(y + this.y)}" width="${number(width)}" height="${number(height)}" fill="${escapeText(colour)}"/>`;
  }

  /** @param {string} text */
  measureText(text) {
    return { width: this.measure(text) };
  }

  /** @param {string} text @param {number} x @param {number} y @param {number} [most] */
  fillText(text, x, y, most = Infinity) {
    const width = Math.min(most, this.measure(text));
    this.parts.add(textPart(text, (this.textAlign === "right" ? x - width : x) + this.x, y + this.y, width, `font-size="12" fill="${escapeText(this.fillStyle)}"`));
  }
}

/** @param {string} text @param {number} x @param {number} y of its middle @param {number} width @param {string} style */
function textPart(text, x, y, width, style) {
  return `<text x="${number(x)}" y="${number(y)}" textLength="${number(width)}" lengthAdjust="spacingAndGlyphs" ${style}>${escapeText(text)}</text>`;
}

/**
 * @param {string[]} parts
 * @param {number} width
 * @param {number} height
 * @param {string} back the colour of the background
 */
export function svgFile(parts, width, height, back) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${number(width)}" height="${number(height)}" viewBox="0 0 ${number(width)} ${number(height)}" font-family="system-ui, sans-serif" dominant-baseline="central" style="white-space: pre">`,
    `<rect width="100%" height="100%" fill="${escapeText(back)}"/>`, ...parts, "</svg>\n",
  ].join("\n");
}

const controls = "button, select, input, .buttons, [hidden], nav, noscript, script, label"; // that are left out

/**
 * The lines in which a node shows its text.
 * @param {Text} node
 * @returns {{text: string, box: DOMRect}[]}
 */
function linesOf(node) {
  const range = document.createRange();
  /** @type {{text: string, from: number, to: number, top: number}[]} */
  const lines = [];
  const add = (/** @type {number} */ from, /** @type {number} */ to) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    const boxes = range.getClientRects();
    if (boxes.length === 0) return;
    const top = Math.round(boxes[0].top);
    if (boxes.length > 1 && to - from > 1) { // It goes over several lines.
      for (let i = from; i < to;) {
        const next = i + ((node.data.codePointAt(i) ?? 0) > 0xffff ? 2 : 1);
        add(i, next);
        i = next;
      }
      return;
    }
    const last = lines.at(-1);
    if (last && last.top === top) last.to = to;
    else lines.push({ text: "", from, to, top });
  };
  for (const word of node.data.matchAll(/\S+/g)) add(word.index, word.index + word[0].length);
  return lines.map((l) => {
    range.setStart(node, l.from);
    range.setEnd(node, l.to);
    return { text: node.data.slice(l.from, l.to), box: range.getBoundingClientRect() };
  });
}

/**
 * What the page shows as one SVG file.
 * @param {Element} body
 * @param {((c: any) => void) | undefined} paint draws what the canvas of the page shows
 */
export function viewAsSvg(body, paint) {
  const style = getComputedStyle(document.documentElement), back = style.getPropertyValue("--back").trim(), line = style.getPropertyValue("--line").trim();
  /** @type {string[]} */
  const parts = [];
  let width = 0, height = 0;
  const reach = (/** @type {DOMRect} */ box) => {
    width = Math.max(width, box.right + scrollX + 8);
    height = Math.max(height, box.bottom + scrollY + 8);
  };
  for (const canvas of paint ? body.querySelectorAll("canvas") : []) {
    const box = canvas.getBoundingClientRect(), real = canvas.getContext("2d");
    const c = new SvgContext(box.left + scrollX, box.top + scrollY, back, (text) => real?.measureText(text).width ?? 0);
    paint?.(c);
    parts.push(...c.parts);
    reach(box);
  }
  for (const row of body.querySelectorAll("tr")) {
    const box = row.getBoundingClientRect();
    if (box.height === 0 || row.closest(controls)) continue;
    parts.push(`<rect x="${number(box.left + scrollX)}" y="${number(box.bottom + scrollY - 1)}" width="${number(box.width)}" height="1" fill="${escapeText(line)}"/>`);
    reach(box);
  }
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!parent || parent.closest(controls)) continue;
    const s = getComputedStyle(parent);
    const look = `font-size="${number(parseFloat(s.fontSize))}" font-weight="${escapeText(s.fontWeight)}" font-style="${escapeText(s.fontStyle)}" fill="${escapeText(s.color)}"${s.fontFamily.includes("mono") ? ' font-family="monospace"' : ""}`;
    for (const { text, box } of linesOf(/** @type {Text} */ (node))) {
      parts.push(textPart(text, box.left + scrollX, box.top + scrollY + box.height / 2, box.width, look));
      reach(box);
    }
  }
  return svgFile(parts, width, height, back);
}
