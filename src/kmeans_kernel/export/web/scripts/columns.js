// Columns of a table, as in estimators/columns/_columns.py: the conversion of values to the numbers
// of the model, and their text. A value is a number, a text, a boolean, a date in seconds since
// 1970, null if it is missing, or OTHER.

// A level that has no place of its own.
const OTHER = Symbol("other");

const DAY = 86400;

// Position of a level that training has not seen, where rare levels share no place.
const UNKNOWN_LEVEL = -1;

// Part of the range of a column within which two numbers count as near.
const NEAR = 0.05;

// Numbers that a date in seconds since 1970 is turned into; NaN for a missing date.
const DATE_PARTS = {
  days: (seconds) => seconds / DAY,
  month: (seconds) => new Date(Math.floor(Math.trunc(seconds * 1e6) / 1000)).getUTCMonth() + 1,
  weekday: (seconds) => remainder(Math.floor(seconds / DAY + 3), 7), // 1970 began on a Thursday
  hour: (seconds) => remainder(seconds / DAY, 1) * 24,
};

// The remainder of a division, from 0 to the divisor.
function remainder(number, divisor) {
  const left = number % divisor;
  return left < 0 ? left + divisor : left;
}

// Letters of a number that a field of the form shows.
const FIELD_WIDTH = 12;

// Significant digits of a number that is told in short, and the most of a float64.
const SHORT = 4;
const MOST_DIGITS = 15;

// Numbers with an exponent where they are told in short: those from LARGE on, and below SMALL. Those
// from LARGE on have no fraction either, unless it is that of money.
const LARGE = 1e6;
const CENTS = 2;
const SMALL = 1e-3;

class Column {
  constructor(description) {
    Object.assign(this, { levels: [], parts: [], ...description });
    this.places = new Map(this.levels.map((level, place) => [level, place]));
  }

  // The numbers that a value is turned into.
  code(value) {
    switch (this.kind) {
      case "dropped": return [];
      case "number": return [value ?? NaN];
      case "date": return this.parts.map((part) => DATE_PARTS[part](value ?? NaN));
      default: return [isMissing(value) ? NaN : this.places.get(value) ?? this.unknown];
    }
  }

  get unknown() {
    return this.rare ? this.levels.length : UNKNOWN_LEVEL;
  }

  // The value of a cell of the page, in which levels are their positions.
  valueOf(cell) {
    if (Number.isNaN(cell)) return null;
    if (!this.hasLevels) return cell;
    const [first, second] = this.levels;
    // Of a boolean that was always the same, the other value is known by its name.
    const other = this.kind === "boolean" && second === undefined ? !first : OTHER;
    return this.levels[cell] ?? other;
  }

  get hasLevels() {
    return this.kind === "category" || this.kind === "boolean";
  }

  // Whether a date is more than a day.
  get hasTime() {
    return this.parts.includes("hour");
  }

  // Whether two values are the same, or near to each other in the range of the column.
  isNear(value, other) {
    if (this.hasLevels || isMissing(value) || isMissing(other)) return value === other;
    return Math.abs(value - other) <= NEAR * (this.high - this.low);
  }

  textOf(value) {
    if (isMissing(value)) return "missing";
    if (value === OTHER) return "other";
    if (this.kind === "date") return dateText(value, this.hasTime);
    if (this.kind === "number") return numberText(value, this);
    return levelText(value);
  }
}

const isMissing = (value) => value === null || Number.isNaN(value);

function levelText(level) {
  if (typeof level === "boolean") return level ? "yes" : "no";
  return level === "" ? "(empty)" : String(level);
}

// A number with the decimal places of its column, or with as many digits as its range needs; with
// fewer places if it would not fit into a field. Digits before the point are never rounded away.
function numberText(value, { decimals, digits }) {
  const size = Math.abs(value);
  if (decimals == null && size > 0 && size < SMALL) return scientific(value, digits);
  if (decimals == null && size < 10 ** digits) return plain(value, digits);
  const most = size >= LARGE && decimals > CENTS ? 0 : decimals ?? 0;
  const places = range(most).find((place) => value.toFixed(place).length <= FIELD_WIDTH);
  if (places === undefined) return scientific(value, Math.max(digits, SHORT));
  const text = value.toFixed(places);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

// The whole numbers from the highest down to 0.
const range = (highest) => Array.from({ length: highest + 1 }, (_, k) => highest - k);

// The ends of a range of numbers, with as few digits, from SHORT on, as tell them apart. Large numbers
// that differ by little are told in full.
function rangeTexts(low, high) {
  for (let digits = SHORT; ; digits++) {
    const texts = [low, high].map((value) => shortText(value, digits));
    if (low === high || texts[0] !== texts[1] || digits > MOST_DIGITS) return texts;
  }
}

// A number of few letters: with commas between thousands, and as 1.234e9 if it is large or small.
function shortText(value, digits) {
  const size = Math.abs(value);
  const isLarge = size >= LARGE && (digits === SHORT || size >= 10 ** MOST_DIGITS);
  if (isLarge || (size > 0 && size < SMALL)) return scientific(value, digits);
  const rounded = size >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits));
  return rounded.toLocaleString("en", { maximumFractionDigits: MOST_DIGITS });
}

// A number as 1.234e9, without zeros at the end of its digits.
function scientific(value, digits) {
  const [factor, power] = value.toExponential(digits - 1).split("e").map(Number);
  return `${factor}e${power}`;
}

function dateText(seconds, withTime) {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return String(seconds);
  const [day, time] = date.toISOString().split("T");
  return withTime ? `${day} ${time.slice(0, 5)}` : day;
}

// The numbers of a row of values, as the model takes them.
function codesOf(columns, values) {
  return Float64Array.from(columns.flatMap((column, j) => column.code(values[j])));
}

// The columns of the rows that the page takes, with levels if the first step takes a table.
function columnsOf({ tree, fields }) {
  const own = firstStep(tree).columns;
  return fields.map((field, j) => new Column({ ...own?.[j], ...field }));
}

function firstStep(tree) {
  return tree.kind === "Pipeline" ? firstStep(tree.steps[0][1]) : tree;
}
