// Start of the page: decodes its data, builds the estimator, and connects the views.

async function start() {
  const facts = JSON.parse(byId("facts").textContent);
  const arrays = await readArrays(byId("bytes").textContent, facts.arrays);
  byId("bytes").remove();
  const estimator = estimatorOf(facts.tree, new Place(arrays));
  const columns = facts.kind === "table" ? columnsOf(facts) : null;
  const representatives = new Representatives(facts, arrays, classifierOf(estimator), columns);
  const view = new VerdictView(facts, representatives);

  // A model that was not trained on a table takes numbers alone, NaN for missing ones.
  const takesNumbers = columns && !firstStep(facts.tree).columns;

  function classify(row) {
    if (!row) return view.clear();
    const began = performance.now();
    const verdict = estimator.classify(
      takesNumbers ? Float64Array.from(row, (value) => value ?? NaN) : row);
    return view.show(verdict, row, performance.now() - began);
  }

  view.clear();
  const input = facts.kind === "images"
    ? new Pad(facts, view, classify, () => select(byId("tab-try")))
    : new Fields(facts, columns, classify);
  const put = (cells) => {
    input.put(columns
      ? columns.map((column, j) => column.valueOf(cells[j]))
      : shaped(inkOfValues(cells, facts.frame), facts.shape));
    select(byId("tab-try"));
    byId("panel-try").scrollIntoView();
  };
  representatives.put = put;
  browseRepresentatives(representatives, facts);
  if (facts.test) {
    const tests = new Tests(facts, arrays, columns, put);
    if (columns) tests.listRows(byId("rows"));
    byId("example").addEventListener("click", () => {
      tests.take(Math.floor(Math.random() * tests.truth.length));
    });
  }
  byId("about").append(...facts.about.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  listenToTabs();
  document.body.classList.add("ready");
  globalThis.kmeansKernel = { facts, estimator, arrays, columns };
}

function listenToTabs() {
  const tabs = Array.from(document.querySelectorAll("[role=tab]:not([hidden])"));
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const places = { ArrowLeft: at - 1, ArrowRight: (at + 1) % tabs.length, Home: 0, End: -1 };
      const next = tabs.at(places[event.key]);
      if (!(event.key in places)) return;
      event.preventDefault();
      select(next);
      next.focus();
    });
  });
}

function select(chosen) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const is = tab === chosen;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !is;
  }
}

start().catch((error) => {
  byId("answer-note").textContent = `This page could not start: ${error.message}`;
});
