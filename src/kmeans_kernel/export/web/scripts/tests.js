// View of the test data: the confusion matrix, and the rows of each of its cells.

// Test rows of a table that the form offers by name.
const MOST_LISTED = 200;

class Tests {
  constructor(facts, arrays, columns, put) {
    this.facts = facts;
    this.columns = columns; // null for images
    this.labels = facts.test.labels;
    this.rows = arrays["test.rows"];
    this.truth = arrays["test.true"];
    this.given = arrays["test.given"];
    this.sure = arrays["test.sure"];
    this.put = put; // shows a row in the first tab
    this.showMatrix();
    byId("order").addEventListener("change", () => this.showCell());
    this.choose(null, null);
  }

  // Counts rows by true label (down) and predicted label (across).
  confusion() {
    const n = this.labels.length;
    const counts = Array.from({ length: n }, () => new Array(n).fill(0));
    this.truth.forEach((label, row) => { counts[label][this.given[row]] += 1; });
    return counts;
  }

  showMatrix() {
    const counts = this.confusion();
    const worst = Math.max(1, ...counts.flatMap((row, i) => row.filter((_, j) => i !== j)));
    const head = element("tr", {}, element("td", {}),
      ...this.labels.map((label) => element("th", { scope: "col", title: label }, label)));
    const rows = counts.map((row, i) => element("tr", {},
      element("th", { scope: "row", title: this.labels[i] }, this.labels[i]),
      ...row.map((count, j) => element("td", {}, this.cell(count, i, j, worst)))));
    byId("matrix").append(element("thead", {}, head), element("tbody", {}, ...rows));
    scrolling(byId("matrix").parentElement);
    const wrong = counts.flatMap((row, i) => row.filter((_, j) => i !== j));
    const errors = wrong.reduce((a, b) => a + b, 0);
    byId("test-note").textContent =
      `${this.truth.length.toLocaleString("en")} ${this.facts.noun}s that the model was not trained on, ${errors} of ` +
      `them wrong (${((100 * errors) / this.truth.length).toFixed(2)} %). ${this.facts.test.note}`;
  }

  cell(count, i, j, worst) {
    if (!count) return "";
    const right = i === j;
    return element("button", {
      type: "button",
      class: right ? "right" : "wrong",
      style: right ? null : `--heat: ${(100 * Math.sqrt(count / worst)).toFixed(0)}%`,
      "aria-label": `${counted(count, this.facts.noun)} of ${this.labels[i]} called ` +
        `${this.labels[j]}`,
      onclick: (event) => this.choose(i, j, event.currentTarget),
    }, String(count));
  }

  // Shows the rows of a cell; all misclassified rows if i is null.
  choose(i, j, button = null) {
    this.chosen = [i, j];
    byId("matrix").querySelector("[aria-pressed]")?.removeAttribute("aria-pressed");
    button?.setAttribute("aria-pressed", "true");
    byId("all-wrong").hidden = i === null;
    byId("all-wrong").onclick = () => this.choose(null, null);
    byId("cell-title").textContent = i === null
      ? "All that are wrong" : `${this.labels[i]}, called ${this.labels[j]}`;
    this.showCell();
  }

  showCell() {
    const [i, j] = this.chosen;
    const which = Array.from(this.truth.keys()).filter((row) => (i === null
      ? this.truth[row] !== this.given[row]
      : this.truth[row] === i && this.given[row] === j));
    const order = byId("order").value;
    if (order === "least") which.sort((a, b) => this.sure[a] - this.sure[b]);
    if (order === "most") which.sort((a, b) => this.sure[b] - this.sure[a]);
    showInParts(byId("cell"), which, (some) => this.gallery(some));
  }

  gallery(which) {
    return this.facts.kind === "images"
      ? element("div", { class: "gallery" }, ...which.map((row) => this.card(row)))
      : this.table(which);
  }

  card(row) {
    const name = this.name(row);
    return element("button", {
      type: "button", class: "card", title: `${name}. Try it.`, onclick: () => this.take(row) },
    pictureOf(inkOfValues(rowOf(this.rows, row), this.facts.frame), this.facts.shape, 1, name),
    element("span", { class: "caption" }, this.labels[this.truth[row]],
      this.truth[row] === this.given[row] ? null
        : element("span", { class: "against" }, ` → ${this.labels[this.given[row]]}`)),
    element("span", { class: "stands" }, percent(this.sure[row])));
  }

  table(which) {
    return tableOf("Test rows", this.columns, ["", "is", "called", "sure"], which.map((row) =>
      element("tr", {},
        element("td", { class: "lead" }, tryButton(`row ${row + 1}`, () => this.take(row))),
        element("td", { class: "words" }, this.labels[this.truth[row]]),
        element("td", { class: "words" }, this.labels[this.given[row]]),
        element("td", {}, percent(this.sure[row])),
        ...valueCells(this.columns, this.valuesOf(row)))));
  }

  valuesOf(row) {
    const cells = rowOf(this.rows, row);
    return this.columns.map((column, j) => column.valueOf(cells[j]));
  }

  // Fills a list from which a row can be loaded into the form, until it is changed there.
  listRows(list) {
    const some = Array.from(this.truth.slice(0, MOST_LISTED).keys());
    list.append(element("option", { value: "" }, "Choose a test row"), ...some.map((row) =>
      element("option", { value: row }, this.shortName(row))));
    list.addEventListener("change", () => { if (list.value) this.take(Number(list.value)); });
    byId("input").addEventListener("input", ({ target }) => {
      if (target !== list && target !== byId("find")) list.value = "";
    });
    byId("reset").addEventListener("click", () => { list.value = ""; });
    this.list = list;
  }

  shortName(row) {
    const [truth, given] = [this.labels[this.truth[row]], this.labels[this.given[row]]];
    return `row ${row + 1}: ${truth}${truth === given ? "" : `, called ${given}`}`;
  }

  name(row) {
    return `Test ${this.facts.noun} ${row + 1}: ${this.labels[this.truth[row]]}, called ` +
      `${this.labels[this.given[row]]}, ${percent(this.sure[row])} sure`;
  }

  take(row) {
    this.put(this.columns ? rowOf(this.rows, row) : Float64Array.from(rowOf(this.rows, row)));
    if (this.list) this.list.value = row < MOST_LISTED ? row : "";
  }
}
