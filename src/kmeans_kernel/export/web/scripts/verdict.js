// View of a classified row: probabilities as bars, and the explanation of a score.

// Most classes with a bar, and most representatives shown on each side.
const MOST_BARS = 12;
const MOST_SHOWN = 8;

// Milliseconds without a change after which a result is announced to a screen reader.
const SETTLED = 700;

// Pixels of the explanation on the screen that are too few to see.
const HIDDEN = 100;

class VerdictView {
  constructor(facts, representatives) {
    this.facts = facts;
    this.representatives = representatives;
    this.asked = null; // the class whose score is explained; null for the predicted class
  }

  clear() {
    this.verdict = null;
    this.asked = null;
    byId("answer").textContent = "";
    this.say(this.facts.prompt);
    byId("bars").replaceChildren();
    byId("why").hidden = true;
  }

  show(verdict, row, milliseconds) {
    this.verdict = verdict;
    this.row = row;
    if (this.asked !== null && this.asked === verdict.best) this.asked = null;
    byId("answer").textContent = this.facts.labels[verdict.best];
    byId("answer-note").textContent =
      `${percent(verdict.probabilities[verdict.best])} sure, in ${milliseconds.toFixed(1)} ms`;
    this.speak(`${this.facts.labels[verdict.best]}, ` +
      `${percent(verdict.probabilities[verdict.best])} sure`);
    this.showBars();
    this.showWhy();
  }

  // Shows a message in place of a result.
  say(sentence) {
    byId("answer-note").textContent = sentence;
    this.speak(sentence);
  }

  speak(sentence) {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => { byId("spoken").textContent = sentence; }, SETTLED);
  }

  ask(k) {
    this.asked = k;
    this.showBars();
    this.showWhy();
    byId("bars").querySelector("[aria-pressed=true]").focus({ preventScroll: true });
    const { top, bottom } = byId("why").getBoundingClientRect();
    if (top > innerHeight - HIDDEN || bottom < HIDDEN) byId("why").scrollIntoView();
  }

  showBars() {
    const { probabilities, best } = this.verdict;
    const explained = this.asked ?? best;
    let which = Array.from(probabilities.keys());
    if (which.length > MOST_BARS) {
      which.sort((a, b) => probabilities[b] - probabilities[a]);
      which = which.slice(0, MOST_BARS);
    }
    byId("bars").replaceChildren(...which.map((k) => element("li", {},
      element("button", {
        type: "button",
        class: k === best ? "bar best" : "bar",
        "aria-pressed": String(k === explained),
        "aria-label": `${this.facts.labels[k]}: ${percent(probabilities[k])}. Explain this class.`,
        onclick: () => this.ask(k),
      },
      element("span", { class: "label" }, this.facts.labels[k]),
      element("span", { class: "track" }, element("span", {
        class: "fill", style: `width: ${(100 * this.length(k)).toFixed(2)}%` })),
      element("span", { class: "share" }, percent(probabilities[k]))))));
  }

  // Length of a bar as a fraction of its track. Uncalibrated probabilities differ little, so their
  // bars run from the lowest to the highest.
  length(k) {
    const { probabilities, best } = this.verdict;
    const lowest = this.facts.flat ? Math.min(...probabilities) : 0;
    const highest = this.facts.flat ? probabilities[best] : 1;
    return (probabilities[k] - lowest) / Math.max(1e-12, highest - lowest);
  }

  showWhy() {
    const k = this.asked ?? this.verdict.best;
    const contributions = this.verdict.contributions(k);
    const order = Array.from(contributions.keys()).sort(
      (a, b) => contributions[b] - contributions[a]);
    const positive = order.filter((q) => contributions[q] > 0).slice(0, MOST_SHOWN);
    const negative = order.reverse().filter((q) => contributions[q] < 0).slice(0, MOST_SHOWN);
    byId("why-title").textContent = `Why ${this.facts.labels[k]}?`;
    const lead = { name: "contribution", show: (q) => contributionLine(contributions[q]) };
    byId("for").replaceChildren(this.listOf(positive, lead));
    byId("against").replaceChildren(this.listOf(negative, lead));
    if (this.facts.kind === "table") this.showSimilar();
    byId("sum").replaceChildren(...this.sum(k, contributions, positive, negative));
    byId("why").hidden = false;
  }

  // Shows the rows with the highest kernel values, which do not depend on the class.
  showSimilar() {
    const { values } = this.verdict;
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
    const lead = { name: "similarity", show: (q) => values[q].toFixed(3) };
    byId("similar").replaceChildren(this.listOf(order.slice(0, MOST_SHOWN), lead));
  }

  listOf(which, lead) {
    return which.length
      ? this.representatives.gallery(which, lead, this.row)
      : element("p", { class: "note" }, "None.");
  }

  // Lists the terms that add up to the score.
  sum(k, contributions, positive, negative) {
    const total = (which) => which.reduce((sum, q) => sum + contributions[q], 0);
    const all = contributions.reduce((a, b) => a + b, 0);
    const others = contributions.length - positive.length - negative.length;
    const parts = [
      [`${positive.length} shown that raise it`, total(positive)],
      [`${negative.length} shown that lower it`, total(negative)],
      [`${others} others`, all - total(positive) - total(negative)],
      ["intercept", this.verdict.model.intercept[k]],
    ];
    return [
      ...parts.map(([name, value]) => sumLine(name, value)),
      sumLine(`score of ${this.facts.labels[k]}`, this.verdict.scores[k], "total"),
    ];
  }
}

function sumLine(name, value, kind = "") {
  return element("div", { class: kind },
    element("dt", {}, name), element("dd", {}, signed(value)));
}
