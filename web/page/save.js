// @ts-check
// Makes a file of what the page shows. It has no script, and asks for nothing when it is opened.

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

/** Saves what the page shows. */
export async function saveView() {
  const r = await fetch("style.css");
  if (!r.ok) throw new Error(await r.text());
  const url = URL.createObjectURL(new Blob([viewAsFile(document, await r.text())], { type: "text/html" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = `pegasus-${location.hash.slice(1).split(/[/?]/)[0] || "overview"}.html`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
