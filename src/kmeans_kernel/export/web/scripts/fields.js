// Form for a row of a table: a control for each column, by its kind. A control has an element, takes
// a value, and gives one: null if it is missing, undefined if what was entered is not complete.

// Columns from which there is a field to find one by its name.
const MANY_COLUMNS = 13;

class Fields {
  constructor(facts, columns, onRow) {
    this.onRow = onRow;
    this.takesMissing = facts.takes_missing;
    this.controls = columns.map((column, j) => this.control(column, `feature-${j}`));
    this.typical = columns.map((column) => column.valueOf(column.typical ?? NaN));
    byId("reset").addEventListener("click", () => this.put(this.typical));
    this.listenToSearch(columns.filter((column) => column.kind !== "dropped"));
    this.sayLeftOut(columns.filter((column) => column.kind === "dropped"));
    this.put(this.typical);
  }

  control(column, id) {
    if (column.kind === "dropped") return null;
    const made = CONTROLS[column.kind](column, id, () => this.changed(), this.takesMissing);
    byId("fields").append(element("div", { class: "field", title: column.name },
      element("div", { class: "head" },
        element(column.kind === "boolean" ? "span" : "label",
          { class: "name", id: `${id}-name`, for: column.kind === "boolean" ? null : id },
          column.name),
        element("span", { class: "ends" }, endsOf(column))),
      made.element));
    return made;
  }

  put(values) {
    this.controls.forEach((control, j) => control?.put(values[j]));
    this.changed();
  }

  changed() {
    const values = this.controls.map((control) => (control ? control.value() : null));
    const wrong = values.map((value, j) => this.controls[j] !== null &&
      (value === undefined || (value === null && !this.takesMissing)));
    this.controls.forEach((control, j) => control?.mark(wrong[j]));
    this.onRow(wrong.includes(true) ? null : values);
  }

  listenToSearch(columns) {
    const boxes = Array.from(byId("fields").children);
    const search = byId("find");
    byId("find-box").hidden = columns.length < MANY_COLUMNS;
    const show = () => {
      const words = search.value.trim().toLowerCase();
      columns.forEach(({ name }, k) => { boxes[k].hidden = !name.toLowerCase().includes(words); });
      const shown = boxes.filter((box) => !box.hidden).length;
      byId("found").textContent = words ? `${shown} of ${boxes.length}` : `${boxes.length} columns`;
    };
    search.addEventListener("input", show);
    show();
  }

  sayLeftOut(columns) {
    const names = columns.map(({ name, reason }) => (reason ? `${name} (${reason})` : name));
    byId("left-out").textContent = names.length ? `Not used by the model: ${names.join(", ")}.` : "";
  }
}

// The range of the training rows, as a hint.
function endsOf(column) {
  const [low, high] = [column.minimum ?? column.low, column.maximum ?? column.high];
  if (low == null || high == null) return "";
  const texts = column.kind === "date"
    ? [low, high].map((value) => dateText(value, false)) : rangeTexts(low, high);
  return texts.join(" – ");
}

const CONTROLS = {
  number: numberControl,
  category: categoryControl,
  boolean: booleanControl,
  date: dateControl,
};

// A number field and a slider. The field shows a number rounded as its column is, and its title all.
function numberControl(column, id, changed, takesMissing) {
  const { low, high, step, decimals } = column;
  const number = element("input", {
    id, type: "number", step: decimals == null ? "any" : 10 ** -decimals,
    placeholder: takesMissing ? "missing" : null });
  const slider = element("input", {
    type: "range", min: low, max: high, step, "aria-label": `${column.name}, from ${rangeTexts(low, high).join(" to ")}` });
  const show = (value) => { number.value = isMissing(value) ? "" : numberText(value, column); };
  number.addEventListener("input", () => {
    slider.value = number.value;
    number.title = "";
    changed();
  });
  slider.addEventListener("input", () => {
    show(slider.valueAsNumber);
    number.title = "";
    changed();
  });
  return entry(number, [slider], takesMissing && column, changed, {
    read: () => valueOfEntry(number),
    write: (value) => {
      show(value);
      number.title = value ?? "";
      slider.value = value ?? (low + high) / 2;
    },
  });
}

// A field for a day, or for a day and a time. Dates are those of UTC, as in the table.
function dateControl(column, id, changed) {
  const date = element("input", { id, type: column.hasTime ? "datetime-local" : "date" });
  // The same time every day is no part of the field.
  const time = column.hasTime ? 0 : remainder(column.low ?? 0, DAY);
  date.addEventListener("input", changed);
  return entry(date, [], column, changed, {
    read: () => {
      const milliseconds = valueOfEntry(date);
      return milliseconds == null ? milliseconds : milliseconds / 1000 + time;
    },
    write: (value) => {
      const moment = new Date(1000 * ((value ?? NaN) - time));
      date.value = Number.isNaN(moment.getTime())
        ? "" : moment.toISOString().slice(0, -1).split("T").slice(0, column.hasTime ? 2 : 1).join("T");
    },
  });
}

// The number of an input element: null if it is empty, undefined if it cannot be read.
function valueOfEntry(input) {
  if (Number.isFinite(input.valueAsNumber)) return input.valueAsNumber;
  return input.validity.badInput ? undefined : null;
}

// A control with an input element that is empty for a missing value; a button empties it. What was
// put in comes out again unless it was changed, however the element rounds it.
function entry(input, others, missing, changed, { read, write }) {
  let given = {};
  const value = () =>
    (input.value === given.shown && !input.validity.badInput ? given.value : read());
  const put = (one) => {
    write(one);
    given = { value: one, shown: input.value };
  };
  const empty = missing && element("button", {
    type: "button", class: "empty", tabindex: "-1", title: "Set to missing",
    "aria-label": `Set ${missing.name} to missing`,
    onclick: () => { put(null); changed(); input.focus(); },
  }, "×");
  const box = element("div", { class: "control" }, input, empty || null, ...others);
  return {
    element: box,
    value,
    put,
    mark(wrong) {
      input.toggleAttribute("aria-invalid", wrong);
      box.classList.toggle("missing", value() === null && !wrong);
    },
  };
}

// A list of the levels, with entries for other levels and for missing values.
function categoryControl(column, id, changed) {
  const order = Array.from(column.levels.keys()).sort((a, b) =>
    levelText(column.levels[a]).localeCompare(levelText(column.levels[b]), "en", { numeric: true }));
  const select = element("select", { id, onchange: changed },
    ...order.map((place) => element("option", { value: place }, levelText(column.levels[place]))),
    element("option", { value: "other" }, "(other)"),
    element("option", { value: "missing" }, "(missing)"));
  const box = element("div", { class: "control" }, select);
  const values = { other: OTHER, missing: null };
  return {
    element: box,
    value: () => (select.value in values ? values[select.value] : column.levels[select.value]),
    put: (value) => {
      select.value = value === null ? "missing" : column.places.get(value) ?? "other";
    },
    mark: () => box.classList.toggle("missing", select.value === "missing"),
  };
}

// Three buttons, of which one is pressed unless the value is neither true nor false.
function booleanControl(column, id, changed) {
  const choices = [["yes", true], ["no", false], ["missing", null]];
  const radios = choices.map(([name]) => element("input", {
    type: "radio", name: id, id: `${id}-${name}`, value: name, onchange: changed }));
  const box = element("div", { class: "control", role: "radiogroup", "aria-labelledby": `${id}-name` },
    ...choices.map(([name], k) => element("label", { class: "choice" }, radios[k],
      element("span", {}, name))));
  return {
    element: box,
    value: () => {
      const chosen = choices.find((_, k) => radios[k].checked);
      return chosen ? chosen[1] : OTHER;
    },
    put: (value) => {
      choices.forEach(([, one], k) => { radios[k].checked = one === value; });
    },
    mark: () => box.classList.toggle("missing", radios[2].checked),
  };
}
