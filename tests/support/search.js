// Prints what a search in a manual finds, as JSON: node search.js FOLDER QUERY
const fs = require("fs");
const vm = require("vm");

const [folder, query] = process.argv.slice(2);
const page = {
  _ready: () => {},
  _: (text) => text,
  SPHINX_HIGHLIGHT_ENABLED: false,
  document: {getElementById: () => null},
  setIndex: (index) => { page.index = index; },
};
page.window = page;
vm.createContext(page);
const load = (name) => vm.runInContext(
  fs.readFileSync(`${folder}/${name}`, "utf8"), page, {filename: name});
// In the order of search.html.
load("_static/searchtools.js");
load("_static/language_data.js");
vm.runInContext("Search.setIndex = setIndex", page);
load("searchindex.js");
vm.runInContext("Search._index = index", page);
page.query = query;
const found = vm.runInContext(
  "Search._performSearch(...Search._parseQuery(query))", page);
// The last is shown first.
console.log(JSON.stringify(found.reverse().map(([name, title]) => [name, title])));
