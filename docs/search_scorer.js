// The order of what a search finds: classes that are typed exactly, pages that
// explain, the pages of single classes and functions, and attributes last.
// Sphinx writes it into the manual (html_search_scorer in conf.py).
const _lists = /^(changelog|development)$/;
const _bridges = new RegExp(
  "^(clusters|frameworks|jax|migration|pytorch)$");

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
    if (_lists.test(page)) return score + 50;
    const isSection = title.includes(" > ");
    return score - (_bridges.test(page) ? 20 : 0)
      + (kind === "title" ? (isSection ? 110 : 120) : 100);
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
