// Elements and numbers in words, for all that follows; the clauses by their names.
// Everything shown comes from the two islands and enters the page as text, never as markup.

const NOT_IMPLEMENTED = "not_implemented";
const clauses = new Map(data.clauses.map((clause) => [clause.id, clause]));
const outcomeWords = new Map(data.outcomes);
const documentTitles = new Map(data.documents);

/** An element with a class, attributes and children; strings become text. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function makeButton(className, text, pressed) {
  const button = make("button", className, text);
  button.type = "button";
  button.addEventListener("click", pressed);
  return button;
}

function makeLink(className, address, ...children) {
  const link = make("a", className, ...children);
  link.href = address;
  return link;
}

const words = (name) => name.replaceAll("_", " ");
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");
const plural = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;

function seconds(value) {
  if (value === undefined) return "";
  return value < 0.0995 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(1)} s`;
}

function groupBy(members, key) {
  const groups = new Map();
  for (const member of members) {
    if (!groups.has(member[key])) groups.set(member[key], []);
    groups.get(member[key]).push(member);
  }
  return groups;
}

