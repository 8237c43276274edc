// View of the representatives, as pictures or as rows of a table.

// Items that "Show more" adds at a time.
const AT_A_TIME = 120;

class Representatives {
  constructor(facts, arrays, classifier) {
    this.facts = facts;
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

  // Returns an element that shows the given representatives, with their contributions unless null.
  gallery(which, contributions = null) {
    return this.facts.kind === "images"
      ? element("div", { class: "gallery" }, ...which.map((q) => this.card(q, contributions)))
      : this.table(which, contributions);
  }

  card(q, contributions) {
    const name = `A representative of ${this.label(q)}, ${this.standsFor(q)}`;
    const lines = [
      element("span", { class: "of" }, this.label(q)),
      element("span", { class: "stands" }, count(this.counts[q])),
    ];
    if (contributions) lines.unshift(contributionLine(contributions[q]));
    return element("figure", { title: name },
      this.seen ? pictureOf(rowOf(this.seen, q), this.facts.picture_shape, 255, name) : null,
      element("figcaption", {}, ...lines));
  }

  table(which, contributions) {
    const head = [
      ...(contributions ? ["contribution"] : []), "class", `${this.facts.noun}s`,
      ...this.facts.features.map((feature) => feature.name),
    ];
    const rows = which.map((q) => element("tr", {},
      ...(contributions ? [element("td", {}, contributionLine(contributions[q]))] : []),
      element("th", { scope: "row" }, this.label(q)),
      element("td", {}, count(this.counts[q])),
      ...valueCells(rowOf(this.seen, q), this.facts.features)));
    return tableOf("Representatives", head, rows);
  }
}

function contributionLine(value) {
  return element("span", { class: value < 0 ? "against" : "for" }, signed(value));
}

// Returns the table cells of a row, each value with the significant digits of its feature.
function valueCells(row, features) {
  return Array.from(row, (value, j) => element("td", {}, plain(value, features[j].digits)));
}

function tableOf(name, head, rows) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    element("table", {},
      element("thead", {}, element("tr", {}, ...head.map((name) =>
        element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows)));
}

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
