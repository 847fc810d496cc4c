// The order of what a search finds: classes that are typed exactly, pages that
// explain, the pages of single classes and functions, and attributes last.
// Sphinx writes it into the manual (html_search_scorer in conf.py).
const _lists = new RegExp(
  "^(changelog|cheat_sheet|development|glossary|index|api/index)$");
const _bridges = /^(clusters|frameworks|jax|migration|pytorch)$/;
// How much later a page comes: a title on it still precedes a text elsewhere.
const _later = (page) => page.startsWith("api/") ? 50
  : /^(tour$|tutorials\/)/.test(page) ? 20 : _bridges.test(page) ? 8 : 0;

var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => {
    if (kind === "object") {
      const [, what] = /^Python (\w+)/.exec(description) || [];
      if (/attribute|method|property/.test(what)) return score - 100;
      const exact = score >= Scorer.objNameMatch + Scorer.objPrio[1];
      // Before all pages, or before those that only mention the function.
      return score + (exact && what === "class" ? 300
        : exact && what === "function" ? 93 : 0);
    }
    if (kind === "index") return score - 200;
    if (page.startsWith("api/generated/")) return score - 50;
    // They name everything once, and explain little of it.
    const isTitle = kind === "title";
    if (_lists.test(page)) return score + (isTitle ? 90 : 50);
    const isSection = title.includes(" > ");
    // What is typed is the whole title.
    const isWhole = isTitle && score >= Scorer.title;
    return score + (isWhole ? 25 : 0) - _later(page)
      + (isTitle ? (isSection ? 110 : 120) : 100);
  },

  // As Sphinx has them.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
