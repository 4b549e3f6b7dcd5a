// @ts-check
// Elements. Texts of a run go into text nodes alone, never into markup.

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

/**
 * Has a node show a text, and leaves it alone if it shows it already.
 * @param {Element} e
 * @param {string} text
 */
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

/** A table whose cells are changed in place, so that focus and selection stay. */
export class Table {
  /**
   * @param {string} caption
   * @param {string[]} heads
   */
  constructor(caption, heads) {
    this.body = element("tbody");
    this.more = element("p", { class: "more" });
    const row = element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)));
    this.root = element("div", { class: "table" }, element("table", {}, element("caption", {}, caption), element("thead", {}, row), this.body), this.more);
  }

  /**
   * @param {{cells: (string | {text: string, href: string} | {text: string, act: () => void})[], class?: string}[]} rows
   * @param {number} more rows that are left out
   */
  fill(rows, more = 0) {
    while (this.body.children.length > rows.length) this.body.lastElementChild?.remove();
    rows.forEach((row, i) => {
      const tr = this.body.children[i] ?? this.body.appendChild(element("tr"));
      if (tr.className !== (row.class ?? "")) tr.className = row.class ?? "";
      row.cells.forEach((cell, j) => {
        const td = tr.children[j] ?? tr.appendChild(element("td"));
        if (typeof cell === "string") {
          setText(td, cell);
          return;
        }
        if ("act" in cell) {
          const b = /** @type {HTMLButtonElement} */ (td.firstElementChild ?? td.appendChild(element("button", { type: "button" })));
          b.onclick = cell.act;
          setText(b, cell.text);
          return;
        }
        const link = td.firstElementChild ?? td.appendChild(element("a"));
        if (link.getAttribute("href") !== cell.href) link.setAttribute("href", cell.href);
        setText(link, cell.text);
      });
    });
    setText(this.more, more > 0 ? `and ${more} more, not shown` : "");
  }
}

/**
 * The address of the page why.
 * @param {string} group
 * @param {string} synchronizer
 * @param {string} predicate
 */
export function whyLink(group, synchronizer, predicate) {
  return `#why/${[group, synchronizer, predicate].map(encodeURIComponent).join("/")}`;
}
