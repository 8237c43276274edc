// View of the representatives, as pictures or as rows of a table.

// Items that "Show more" adds at a time.
const AT_A_TIME = 120;

// Letters that a cell of a table shows.
const LONG_TEXT = 24;

// Styles of columns before the values: words, where a column holds labels.
const HEADS = { class: "words", is: "words", called: "words" };

class Representatives {
  constructor(facts, arrays, classifier, columns) {
    this.facts = facts;
    this.columns = columns;
    this.owners = classifier.owners;
    this.counts = classifier.counts;
    this.seen = arrays[facts.kind === "images" ? "pictures" : "points"];
  }

  label(q) {
    return this.facts.labels[this.owners[q]];
  }

  standsFor(q) {
    return `stands for ${counted(this.counts[q], this.facts.noun)}`;
  }

  // Representatives of class k, by descending number of training rows.
  ofClass(k) {
    const own = Array.from(this.owners.keys()).filter((q) => this.owners[q] === k);
    return own.sort((a, b) => this.counts[b] - this.counts[a] || a - b);
  }

  // Returns an element that shows the given representatives. `lead` has the name of what is told
  // first of each, and a function that shows it; a table can begin with a row to compare with.
  gallery(which, lead = null, row = null) {
    return this.facts.kind === "images"
      ? element("div", { class: "gallery" }, ...which.map((q) => this.card(q, lead)))
      : this.table(which, lead ?? this.tryLead(), row);
  }

  card(q, lead) {
    const name = `A representative of ${this.label(q)}, ${this.standsFor(q)}`;
    const lines = [
      element("span", { class: "of" }, this.label(q)),
      element("span", { class: "stands" }, count(this.counts[q])),
    ];
    if (lead) lines.unshift(lead.show(q));
    return element("figure", { title: name },
      this.seen ? pictureOf(rowOf(this.seen, q), this.facts.picture_shape, 255, name) : null,
      element("figcaption", {}, ...lines));
  }

  table(which, lead, row) {
    const head = [lead.name, "class", `${this.facts.noun}s`];
    const rows = which.map((q) => element("tr", {},
      element("td", { class: "lead" }, lead.show(q)),
      element("th", { scope: "row" }, this.label(q)),
      element("td", {}, count(this.counts[q])),
      ...valueCells(this.columns, this.valuesOf(q), row)));
    if (row) {
      rows.unshift(element("tr", { class: "own" },
        element("th", { class: "lead", scope: "row" }, "this row"),
        element("th", { colspan: head.length - 1 }),
        ...valueCells(this.columns, row)));
    }
    return tableOf("Representatives", this.columns, head, rows);
  }

  // Buttons that load a representative into the form.
  tryLead() {
    return { name: "", show: (q) =>
      tryButton(`representative ${q + 1}`, () => this.put(rowOf(this.seen, q))) };
  }

  valuesOf(q) {
    const cells = rowOf(this.seen, q);
    return this.columns.map((column, j) => column.valueOf(cells[j]));
  }
}

function contributionLine(value) {
  return element("span", { class: value < 0 ? "against" : "for" }, signed(value));
}

function tryButton(name, onclick) {
  return element("button", { type: "button", "aria-label": `Try ${name}`, onclick }, "Try");
}

// Returns the table cells of a row of values; those near to another row's are marked.
function valueCells(columns, values, other = null) {
  return columns.flatMap((column, j) => {
    if (column.kind === "dropped") return [];
    const text = column.textOf(values[j]);
    const kinds = [
      column.kind === "number" ? "" : "words",
      isMissing(values[j]) ? "none" : "",
      other && column.isNear(values[j], other[j]) ? "near" : ""];
    return [element("td", { class: kinds.filter(Boolean).join(" ") || null,
      title: text.length > LONG_TEXT ? text : null }, text)];
  });
}

// Returns a table; `head` names what stands before the values.
function tableOf(name, columns, head, rows) {
  const names = columns.filter((column) => column.kind !== "dropped").map((column) =>
    element("th", { scope: "col", class: column.kind === "number" ? null : "words",
      title: column.name }, column.name));
  return scrolling(element("div", {
    class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    element("table", { class: "rows" },
      element("thead", {}, element("tr", {}, ...head.map((one, k) =>
        element("th", { scope: "col", class: HEADS[one] ?? (k ? null : "lead") }, one)), ...names)),
      element("tbody", {}, ...rows))));
}

// Tells by a class, from now on, whether a box can be scrolled to the right.
function scrolling(box) {
  box.addEventListener("scroll", () => tellMore(box), { passive: true });
  SIZES.observe(box);
  return box;
}

function tellMore(box) {
  box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
}

const SIZES = new ResizeObserver((entries) => entries.forEach(({ target }) => tellMore(target)));

// Fills the tab that shows the representatives of one class.
function browseRepresentatives(representatives, facts) {
  const chooser = byId("of-class");
  chooser.append(...facts.labels.map((label, k) => element("option", { value: k }, label)));
  const show = () => {
    const which = representatives.ofClass(Number(chooser.value));
    byId("class-note").textContent =
      `${counted(which.length, "representative")} of ${facts.labels[chooser.value]}, those that ` +
      `stand for most ${facts.noun}s first. ${facts.pictures_note}`;
    showInParts(byId("of-class-all"), which, (some) => representatives.gallery(some));
  };
  chooser.addEventListener("change", show);
  show();
}

// Shows the first items of a list, with a button for more.
function showInParts(container, items, view) {
  container.replaceChildren();
  if (!items.length) return container.append(element("p", { class: "note" }, "None."));
  let shown = 0;
  const more = element("button", { type: "button", class: "more", onclick: next }, "Show more");
  function next() {
    container.insertBefore(view(items.slice(shown, shown + AT_A_TIME)), more);
    shown += AT_A_TIME;
    more.hidden = shown >= items.length;
  }
  container.append(more);
  return next();
}
