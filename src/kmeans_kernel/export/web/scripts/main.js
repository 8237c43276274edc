// Start of the page: decodes its data, builds the estimator, and connects the views.

async function start() {
  const facts = JSON.parse(byId("facts").textContent);
  const arrays = await readArrays(byId("bytes").textContent, facts.arrays);
  byId("bytes").remove();
  const estimator = estimatorOf(facts.tree, new Place(arrays));
  const representatives = new Representatives(facts, arrays, classifierOf(estimator));
  const view = new VerdictView(facts, representatives);

  function classify(row) {
    if (!row) return view.clear();
    const began = performance.now();
    const verdict = estimator.classify(row);
    return view.show(verdict, performance.now() - began);
  }

  view.clear();
  const input = facts.kind === "images"
    ? new Pad(facts, view, classify, () => select(byId("tab-try")))
    : new Fields(facts, classify);
  const put = (row) => {
    input.put(facts.kind === "images" ? shaped(inkOfValues(row, facts.frame), facts.shape) : row);
    select(byId("tab-try"));
    byId("panel-try").scrollIntoView();
  };
  browseRepresentatives(representatives, facts);
  if (facts.test) {
    const tests = new Tests(facts, arrays, put);
    byId("example").addEventListener("click", () => {
      tests.take(Math.floor(Math.random() * tests.truth.length));
    });
  }
  byId("about").append(...facts.about.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  listenToTabs();
  document.body.classList.add("ready");
  globalThis.kmeansKernel = { facts, estimator, arrays };
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
