// How the search orders its results: the pages of the C++ API come after all others.
// The numbers are Sphinx's own. `var`, as searchtools.js declares it again.
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("docs/core/") ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
