// Form for a row of a table: a number field and a slider for each feature.

class Fields {
  constructor(facts, onRow) {
    this.onRow = onRow;
    this.inputs = facts.features.map((feature, j) => this.field(feature, j));
    this.typical = facts.features.map((feature) => feature.typical);
    byId("reset").addEventListener("click", () => this.put(this.typical));
    this.put(this.typical);
  }

  field({ name, low, high, step, digits }, j) {
    const id = `feature-${j}`;
    const number = element("input", { id, type: "number", step: "any" });
    const slider = element("input", {
      type: "range", min: low, max: high, step, "aria-label": `${name}, from ${low} to ${high}` });
    number.addEventListener("input", () => { slider.value = number.value; this.changed(); });
    slider.addEventListener("input", () => { number.value = slider.value; this.changed(); });
    byId("fields").append(element("div", { class: "field" },
      element("label", { for: id }, name), number, slider,
      element("span", { class: "ends" },
        element("span", {}, plain(low, digits)), element("span", {}, plain(high, digits)))));
    return { number, slider };
  }

  put(row) {
    this.inputs.forEach(({ number, slider }, j) => {
      number.value = Number(row[j]);
      slider.value = row[j];
    });
    this.changed();
  }

  changed() {
    const row = Float64Array.from(this.inputs, ({ number }) => number.valueAsNumber);
    for (const { number } of this.inputs) {
      number.toggleAttribute("aria-invalid", Number.isNaN(number.valueAsNumber));
    }
    this.onRow(row.every(Number.isFinite) ? row : null);
  }
}
