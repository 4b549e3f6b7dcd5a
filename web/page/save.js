// @ts-check
// Makes a file of what the page shows. It has no script, and asks for nothing when it is opened.

import { viewAsSvg } from "./svg.js";

const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/**
 * The document as one HTML file.
 * @param {Document} page
 * @param {string} css the style of the page
 */
export function viewAsFile(page, css) {
  const copy = /** @type {HTMLElement} */ (page.documentElement.cloneNode(true));
  for (const e of copy.querySelectorAll("script, link, noscript")) e.remove();
  const drawn = page.querySelectorAll("canvas");
  copy.querySelectorAll("canvas").forEach((canvas, i) => {
    const image = page.createElement("img");
    image.src = drawn[i].toDataURL();
    image.alt = canvas.getAttribute("aria-label") ?? "";
    image.width = drawn[i].clientWidth;
    canvas.replaceWith(image);
  });
  const inputs = page.querySelectorAll("input, select");
  copy.querySelectorAll("input, select").forEach((e, i) => {
    const live = /** @type {HTMLInputElement | HTMLSelectElement} */ (inputs[i]);
    if (live instanceof HTMLInputElement) {
      e.setAttribute("value", live.value);
      e.toggleAttribute("checked", live.checked);
    } else {
      for (const option of e.querySelectorAll("option")) option.toggleAttribute("selected", option.value === live.value);
    }
  });
  for (const e of copy.querySelectorAll("input, select, button")) e.setAttribute("disabled", "");
  for (const e of copy.querySelectorAll("a")) e.removeAttribute("href");
  const meta = page.createElement("meta"), style = page.createElement("style");
  meta.httpEquiv = "Content-Security-Policy";
  meta.content = policy;
  style.textContent = css;
  const head = copy.querySelector("head");
  head?.prepend(meta);
  head?.append(style);
  return `<!doctype html>\n${copy.outerHTML}\n`;
}

/** Saves what the page shows as HTML. */
export async function saveView() {
  const r = await fetch("style.css");
  if (!r.ok) throw new Error(await r.text());
  saveFile(viewAsFile(document, await r.text()), "html", "text/html");
}

/**
 * Saves what the page shows as SVG.
 * @param {((c: any) => void) | undefined} paint draws what the canvas of the page shows
 */
export function saveSvg(paint) {
  saveFile(viewAsSvg(document.body, paint), "svg", "image/svg+xml");
}

/** @param {string} text @param {string} ending of its name @param {string} type */
function saveFile(text, ending, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = `pegasus-${location.hash.slice(1).split(/[/?]/)[0] || "overview"}.${ending}`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
