
"use strict";

// Everything shown comes from the two islands and enters the page as text, never as markup.

const CHUNK = 200;
const data = JSON.parse(document.getElementById("data").textContent);
const clauses = new Map(data.clauses.map((clause) => [clause.id, clause]));
const outcomeWords = new Map(data.outcomes);
const documentTitles = new Map(data.documents);
const $ = (id) => document.getElementById(id);

/** An element with a class, attributes and children; strings become text. */
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const words = (name) => name.replaceAll("_", " ");
const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u2009");
const plural = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const seconds = (value) => (value === null ? "" : value < 0.0995 ? `${(value * 1000).toFixed(1)} ms` : `${value.toFixed(1)} s`);

// ---- the head of the page

function showHead() {
  $("implementation").textContent = data.implementation;
  const facts = data.label === data.implementation ? data.facts : [["--impl", data.label], ...data.facts];
  for (const [key, value] of facts) $("facts").append(make("div", "", make("dt", "", key), make("dd", "", value)));
  $("claim").className = data.claim;
  $("claim").querySelector("strong").textContent = data.claim.toUpperCase();
  $("claim").querySelector("span").textContent = data.reason;
  if (data.claim === "invalid") {
    $("invalid").textContent = `This report is invalid and supports no claim: ${data.reason}.`;
    $("invalid").hidden = false;
  }
  $("problems").hidden = data.problems.length === 0;
  $("problems").querySelector("ul").append(...data.problems.map((problem) => make("li", "", problem)));
}

// ---- coverage

const BARS = data.outcomes.map(([name]) => name).filter((name) => name !== "not_testable");

function tally(members) {
  const counts = new Map(BARS.map((name) => [name, 0]));
  for (const clause of members) if (counts.has(clause.outcome)) counts.set(clause.outcome, counts.get(clause.outcome) + 1);
  return counts;
}

const total = (counts) => [...counts.values()].reduce((sum, number) => sum + number, 0);

/** A name, a bar of outcomes, and how many of the testable clauses pass. */
function measure(tag, name, members) {
  const counts = tally(members), all = total(counts);
  const bar = make("span", "bar");
  const said = [];
  for (const outcome of BARS) {
    if (!counts.get(outcome)) continue;
    said.push(`${counts.get(outcome)} ${outcomeWords.get(outcome)}`);
    const part = make("i", `is-${outcome}`);
    part.style.flexGrow = counts.get(outcome);
    part.title = said.at(-1);
    bar.append(part);
  }
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", said.join(", ") || "nothing a test can judge");
  const title = make("span", "name", name);
  title.title = name;
  const number = make("span", "number", make("b", "", String(counts.get("pass"))), ` of ${all}`);
  if (all === 0) number.replaceChildren("not testable");
  return make(tag, "measure", title, bar, number);
}

const OTHERWISE = { static: "checked statically", inspection: "by inspection", untestable: "not testable" };

function clauseRow(clause) {
  const twin = clause.twin ? ` (says what ${clause.twin} says)` : "";
  const why = clause.outcome === "not_testable" ? OTHERWISE[clause.verify] : outcomeWords.get(clause.outcome);
  const outcome = make("span", `outcome is-${clause.outcome}`, why);
  const name = clause.cases ? clauseLink(clause.id) : make("span", "bits", clause.id);
  if (clause.cases) name.title = `show ${plural(clause.cases, "case")}`;
  return make("li", "", name, make("span", "level", clause.level), outcome, make("span", "summary", clause.summary + twin));
}

/** A button that shows the cases of one clause. */
function clauseLink(id) {
  const button = make("button", "link", id);
  button.type = "button";
  button.addEventListener("click", () => {
    $("filters").reset();
    $("clause").value = id;
    filter();
    $("cases").scrollIntoView();
  });
  return button;
}

/** A measure that opens; what is inside is made when it is first opened. */
function folding(name, members, inside) {
  const fold = make("details", "", measure("summary", name, members));
  fold.addEventListener("toggle", () => {
    if (fold.open && fold.children.length === 1) fold.append(...inside());
  });
  return fold;
}

function sections(members) {
  return [...groupBy(members, "section")].map(([section, inside]) => {
    const name = /^\d/.test(section) ? `Section ${section}` : section;
    return folding(name, inside, () => [make("ul", "clauses", ...inside.map(clauseRow))]);
  });
}

function groupBy(members, key) {
  const groups = new Map();
  for (const member of members) {
    if (!groups.has(member[key])) groups.set(member[key], []);
    groups.get(member[key]).push(member);
  }
  return groups;
}

function showCoverage() {
  const counts = tally(data.clauses);
  $("covered").textContent =
    `${grouped(counts.get("pass"))} of ${grouped(total(counts))} testable clauses pass; ` +
    `${grouped(data.clauses.length - total(counts))} more cannot be judged by a test`;
  for (const outcome of BARS) if (counts.get(outcome)) $("legend").append(make("li", `is-${outcome}`, `${outcomeWords.get(outcome)} ${grouped(counts.get(outcome))}`));
  for (const level of data.levels) $("by-level").append(measure("div", level, data.clauses.filter((clause) => clause.level === level)));
  for (const [key, title] of data.documents) {
    const members = data.clauses.filter((clause) => clause.document === key);
    const levels = () => data.levels.filter((level) => members.some((clause) => clause.level === level));
    $("by-document").append(folding(title, members, () => [
      ...levels().map((level) => make("div", "inside", measure("div", level, members.filter((clause) => clause.level === level)))),
      ...sections(members),
    ]));
  }
}

// ---- cases: filters and list

for (const item of data.cases) {
  item.found = [item.id, item.title, item.reason, item.verdict, item.disposition, ...item.clauses].join("\n").toLowerCase();
  item.judged = item.clauses.map((id) => clauses.get(id)).filter(Boolean);
}
const chosen = new Set();
let matching = [], rendered = 0, current = null;

function showFilters() {
  const counts = new Map();
  for (const item of data.cases) counts.set(item.verdict, (counts.get(item.verdict) ?? 0) + 1);
  for (const verdict of data.verdicts.filter((name) => counts.has(name))) {
    const chip = make("button", `chip verdict is-${verdict}`, words(verdict), make("b", "", grouped(counts.get(verdict))));
    chip.type = "button";
    chip.dataset.verdict = verdict;
    chip.setAttribute("aria-pressed", "false");
    chip.addEventListener("click", () => {
      if (!chosen.delete(verdict)) chosen.add(verdict);
      chip.setAttribute("aria-pressed", String(chosen.has(verdict)));
      filter();
    });
    $("verdicts").append(chip);
  }
  const option = (value, text) => Object.assign(make("option", "", text), { value });
  $("document").append(...data.documents.map(([key, title]) => option(key, title)));
  $("level").append(...data.levels.map((level) => option(level, level)));
  $("clause-ids").append(...data.clauses.filter((clause) => clause.cases).map((clause) => option(clause.id, clause.summary)));
  $("filters").addEventListener("input", filter);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("filters").addEventListener("reset", () => {
    chosen.clear();
    for (const chip of $("verdicts").children) chip.setAttribute("aria-pressed", "false");
    queueMicrotask(filter);
  });
}

/** Whether a case is tagged with the clause typed, one that begins so, or one that says the same. */
function speaksOf(item, typed) {
  const twin = clauses.get(typed)?.twin?.toUpperCase();
  const exact = clauses.has(typed);
  return item.clauses.some((id) => {
    const name = id.toUpperCase(), own = clauses.get(id)?.twin?.toUpperCase();
    return name === typed || name === twin || own === typed || (twin && own === twin) || (!exact && name.startsWith(typed));
  });
}

function filter() {
  const text = $("text").value.trim().toLowerCase().split(/\s+/), typed = $("clause").value.trim().toUpperCase();
  const document_ = $("document").value, level = $("level").value;
  matching = data.cases.filter((item) =>
    (chosen.size === 0 || chosen.has(item.verdict)) &&
    text.every((part) => item.found.includes(part)) &&
    (!typed || speaksOf(item, typed)) &&
    ((!document_ && !level) || item.judged.some((clause) => (!document_ || clause.document === document_) && (!level || clause.level === level))));
  $("shown").textContent = matching.length === data.cases.length ? plural(matching.length, "case") : `${grouped(matching.length)} of ${plural(data.cases.length, "case")}`;
  $("list").replaceChildren();
  rendered = 0;
  if (matching.length === 0) $("list").append(make("li", "empty", data.cases.length ? "No case matches these filters." : "The report holds no cases."));
  showMore();
}

function showMore() {
  $("list").append(...matching.slice(rendered, rendered + CHUNK).map(listed));
  rendered = Math.min(rendered + CHUNK, matching.length);
  $("more").hidden = rendered === matching.length;
  $("more").textContent = `Show ${Math.min(CHUNK, matching.length - rendered)} more of ${grouped(matching.length)}`;
}

function badge(item) {
  const said = item.disposition === "none" ? words(item.verdict) : words(item.disposition);
  const tone = item.disposition === "none" ? item.verdict : item.counts ? "fail" : "deviates";
  return make("span", `verdict is-${tone}`, said);
}

function listed(item) {
  const about = item.verdict === "pass" ? item.title : item.reason || item.title;
  const link = make("a", "", badge(item), make("span", "id", item.id), make("span", "about", about));
  link.href = `#case=${encodeURIComponent(item.id)}`;
  if (item === current) link.setAttribute("aria-current", "true");
  return make("li", "", link);
}

// ---- one case

let details = null;

function detailsOf(item) {
  details ??= $("details").textContent.split("\n");
  return JSON.parse(details[data.cases.indexOf(item)]);
}

function open(item) {
  current = item;
  for (const link of $("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  const place = matching.indexOf(item);
  if (place >= 0 && place < rendered) $("list").children[place].firstChild.setAttribute("aria-current", "true");
  const detail = detailsOf(item);
  const failing = detail.checks.find((check) => !check.passed);
  $("detail").replaceChildren(
    badge(item), make("h2", "", item.id), make("p", "title", item.title),
    ...(detail.reason ? [make("p", "reason", detail.reason)] : []),
    ...(detail.deviation ? part("Known deviation", make("p", "", detail.deviation)) : []),
    ...(failing ? part("First failing check", judged(failing)) : []),
    ...part("See it again", command(detail.command)),
    ...part("Clauses", make("ul", "clause-list", ...item.clauses.map(cited))),
    ...(detail.exchanges.length ? part("What was sent and what came back", make("ol", "exchanges", ...detail.exchanges.map(exchanged))) : []),
    ...(detail.checks.length ? part(plural(detail.checks.length, "check"), make("ol", "checks", ...detail.checks.map(judged).map((check) => make("li", "", check)))) : []),
  );
  $("detail").hidden = false;
  $("detail").scrollTop = 0;
}

const part = (title, ...children) => [make("h3", "", title), ...children];

function cited(id) {
  const clause = clauses.get(id);
  if (!clause) return make("li", "", make("span", "bits", id), make("span", "", "not in this registry"));
  const place = [clause.level, documentTitles.get(clause.document), /^\d/.test(clause.section) ? `section ${clause.section}` : clause.section];
  const read = clause.interpretations.length ? [`read as in ${clause.interpretations.join(", ")}`] : [];
  return make("li", "", clauseLink(id), make("span", "", clause.summary, make("small", "", [...place, ...read].join(", "))));
}

function command(text) {
  const shown = make("pre", "", text), copy = make("button", "copy", "Copy");
  copy.type = "button";
  copy.addEventListener("click", () => {
    getSelection().selectAllChildren(shown);
    navigator.clipboard?.writeText(text).then(() => (copy.textContent = "Copied"), () => {});
  });
  return make("div", "command", shown, copy);
}

function facts(...rows) {
  return make("dl", "facts", ...rows.flatMap(([key, value]) => [make("dt", "", key), make("dd", "", value)]));
}

/** A check: for bits its first differing element, and always what was expected and what was found. */
function judged(check) {
  const outcome = make("span", `verdict is-${check.passed ? "pass" : "fail"}`, check.what);
  const rows = [];
  const difference = check.difference;
  if (difference && difference.index !== null) {
    rows.push(["first differing", `element [${difference.index.join(", ")}]`]);
    rows.push(["expected bits", marked(difference.expected_bits, difference.actual_bits)]);
    rows.push(["found bits", marked(difference.actual_bits, difference.expected_bits)]);
    if (difference.ulp !== null) rows.push(["distance", `${difference.ulp} ULP`]);
    rows.push(["differ", `${grouped(difference.elements)} of ${plural(difference.of, "element")}`]);
  } else if (difference) {
    rows.push(["difference", difference.reason]);
  }
  if (check.passed && JSON.stringify(check.expected) === JSON.stringify(check.actual)) rows.push(["as expected", shown(check.actual)]);
  else rows.push(["expected", shown(check.expected)], ["found", shown(check.actual)]);
  return make("div", "", outcome, facts(...rows));
}

/** Hexadecimal digits, those that differ from the other's marked. */
function marked(bits, other) {
  const digits = [...bits].map((digit, place) => (digit === other[place] ? digit : make("mark", "", digit)));
  return make("span", "bits", ...digits);
}

function exchanged(exchange) {
  const [kind, told] = Object.entries(exchange.observation)[0];
  const tone = { returned: "pass", rejected: "deviates", unsupported: "unsupported", fault: "crash" }[kind];
  const parts = [make("span", "method", exchange.method), make("span", "seconds", seconds(exchange.run.seconds ?? null)), ...fields(exchange.params)];
  parts.push(make("p", "field", make("span", `verdict is-${tone}`, kind === "fault" ? words(told.kind) : kind)), shown(kind === "fault" ? faultText(told) : told));
  if (exchange.run.stderr) parts.push(make("p", "field", "standard error"), make("pre", "stderr", exchange.run.stderr));
  return make("li", "", ...parts);
}

function faultText(fault) {
  const again = { true: "; it came back when the calls were replayed", false: "; it did not come back when the calls were replayed" };
  return fault.detail + (again[fault.reproducible] ?? "");
}

const fields = (object) => Object.entries(object).flatMap(([key, value]) => [make("p", "field", key), shown(value)]);

/** Any value: text as text, tensors word by word, everything else as JSON. */
function shown(value) {
  if (typeof value === "string") return value.includes("\n") ? make("pre", "", value) : make("span", "", value);
  const inside = JSON.stringify(value, (key, item) => (item && item.$tensor ? tensorText(item.$tensor) : item), 2);
  const oneLine = JSON.stringify(JSON.parse(inside));
  return make("pre", "", unquoted(oneLine.length <= 90 ? oneLine : inside));
}

const DIGITS = { fp8_e4m3: 2, fp8_e5m2: 2, int8: 2, bool: 2, fp16: 4, bf16: 4, int16: 4, fp64: 16, int64: 16, complex128: 16 };

/** A tensor as its type and its words, between marks that `unquoted` takes away together with JSON's quotes. */
function tensorText(tensor) {
  const digits = tensor.bits ?? tensor.head ?? "", width = DIGITS[tensor.dtype] ?? 8;
  const split = digits.match(new RegExp(`.{1,${width}}`, "g")) ?? [];
  const rest = tensor.bits === undefined && tensor.sha256 ? ` ... sha256 ${tensor.sha256}` : "";
  return `\u0001${tensor.dtype}[${tensor.shape.join(", ")}] ${split.join(" ")}${rest}\u0002`;
}

const unquoted = (text) => text.replaceAll('"\\u0001', "").replaceAll('\\u0002"', "");

// ---- keys and addresses

/** Show the case that the address names, and let the keyboard follow where a reader asked for it. */
function openAddressed(event) {
  const name = location.hash.startsWith("#case=") ? decodeURIComponent(location.hash.slice(6)) : null;
  const item = name === null ? null : data.cases.find((one) => one.id === name);
  if (!item) return;
  open(item);
  if (event) $("detail").focus({ preventScroll: matchMedia("(min-width: 1001px)").matches });
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    $("text").focus();
  } else if (event.key === "Escape" && (typing || $("detail").contains(event.target))) {
    ($("list").querySelector("[aria-current]") ?? $("list").querySelector("a"))?.focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const link = document.activeElement.closest?.("#list a");
    if (!link) return;
    event.preventDefault();
    const next = event.key === "ArrowDown" ? link.parentElement.nextElementSibling : link.parentElement.previousElementSibling;
    next?.querySelector("a")?.focus();
  }
});

showHead();
showCoverage();
showFilters();
filter();
$("more").addEventListener("click", () => {
  const first = rendered;
  showMore();
  $("list").children[first]?.querySelector("a")?.focus();
});
new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting) && !$("more").hidden && rendered > 0) showMore();
}, { rootMargin: "600px" }).observe($("more"));
addEventListener("hashchange", openAddressed);
$("list").addEventListener("click", (event) => {
  if (event.target.closest("a")?.getAttribute("href") === location.hash) openAddressed(event);
});
openAddressed();
if (!current && data.cases.length && data.cases[0].counts) open(data.cases[0]);
