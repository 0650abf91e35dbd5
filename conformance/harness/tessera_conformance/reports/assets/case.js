
"use strict";

// One case in full: what was sent, what came back, what was expected. Joined before page.js into one script.

let details = null;

function detailsOf(item) {
  details ??= $("details").textContent.split("\n");
  return JSON.parse(details[data.cases.indexOf(item)]);
}

function openCase(item) {
  current = item;
  for (const link of $("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  const place = matching.indexOf(item);
  if (place >= 0 && place < rendered) $("list").children[place].firstChild.setAttribute("aria-current", "true");
  const detail = detailsOf(item);
  const stderr = detail.exchanges.at(-1)?.run.stderr;
  const failing = detail.checks.find((check) => !check.passed);
  $("detail").replaceChildren(
    back(), badge(item), make("h2", "", item.id), make("p", "title", item.title),
    ...(detail.reason ? [make("p", "reason", detail.reason)] : []),
    ...(stderr ? standardError(stderr) : []),
    ...(detail.deviation ? part("Known deviation", make("p", "", detail.deviation)) : []),
    ...(failing ? part("First failing check", judged(failing)) : []),
    ...part("See it again", command(detail.command)),
    ...(detail.left_out ? [make("p", "", detail.left_out)] : []),
    ...part("Clauses", make("ul", "clause-list", ...item.clauses.map(cited))),
    ...listPart("What was sent and what came back", "exchanges", detail.exchanges.map(exchanged)),
    ...listPart("All checks", "checks", detail.checks.map((check) => make("li", "", judged(check)))),
  );
  $("detail").hidden = false;
  $("detail").scrollTop = 0;
}

function closeCase() {
  current = null;
  $("detail").hidden = true;
  for (const link of $("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  if (location.hash.startsWith("#case=")) history.replaceState(null, "", location.href.split("#")[0]);
}

/** Where the panel covers the list, the way back to it. */
function back() {
  const button = make("button", "back", "Back to the list");
  button.type = "button";
  button.addEventListener("click", () => {
    const place = matching.indexOf(current);
    closeCase();
    $("list").children[place]?.firstChild.focus();
  });
  return button;
}

const standardError = (text) => [make("p", "field", "standard error"), make("pre", "stderr", text)];

const part = (title, ...children) => [make("h3", "", title), ...children];
const listPart = (title, name, items) => (items.length ? part(title, make("ol", name, ...items)) : []);
const sectionName = (section) => (/^\d/.test(section) ? `section ${section}` : section);

function cited(id) {
  const clause = clauses.get(id);
  if (!clause) return make("li", "", make("span", "bits", id), make("span", "", "not in this registry"));
  const place = [clause.level, documentTitles.get(clause.document), sectionName(clause.section)].join(", ");
  const read = clause.interpretations.flatMap((name, at) => [at ? ", " : ", read as in ", decision(name)]);
  return make("li", "", clauseLink(id), make("span", "", clause.summary, make("small", "", place, ...read)));
}

/** The id of an interpretation; what was decided shows where the pointer rests on it. */
function decision(name) {
  if (!(name in data.interpretations)) return name;
  const short = make("abbr", "", name);
  short.title = data.interpretations[name];
  return short;
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
  const same = JSON.stringify(check.expected) === JSON.stringify(check.actual);
  if (check.passed && same) rows.push(["as expected", shown(check.actual)]);
  else rows.push(["expected", shown(check.expected)], ["found", shown(check.actual)]);
  return make("div", "", outcome, facts(...rows));
}

/** Hexadecimal digits, those that differ from the other's marked. */
function marked(bits, other) {
  const digits = [...bits].map((digit, place) => (digit === other[place] ? digit : make("mark", "", digit)));
  return make("span", "bits", ...digits);
}

function exchanged(exchange, place, all) {
  const [kind, told] = Object.entries(exchange.observation)[0];
  const tone = { returned: "pass", rejected: "deviates", unsupported: "unsupported", fault: "crash" }[kind];
  const outcome = make("span", `verdict is-${tone}`, kind === "fault" ? words(told.kind) : kind);
  const stderr = place < all.length - 1 ? exchange.run.stderr : undefined; // the last one's stands under the reason
  return make(
    "li", "",
    make("span", "method", exchange.method), make("span", "seconds", seconds(exchange.run.seconds)),
    ...Object.entries(exchange.params).flatMap(([key, value]) => [make("p", "field", key), shown(value)]),
    make("p", "field", outcome), kind === "returned" ? deadlockGraph(told) : null,
    shown(kind === "fault" ? faultText(told) : told),
    ...(stderr ? standardError(stderr) : []),
  );
}

function faultText(fault) {
  if (fault.reproducible === null) return fault.detail;
  return `${fault.detail}; it ${fault.reproducible ? "came back" : "did not come back"} when the calls were replayed`;
}

/** Any value: text as text, tensors word by word, everything else as JSON. */
function shown(value) {
  if (typeof value === "string") return value.includes("\n") ? make("pre", "", value) : make("span", "", value);
  const inside = JSON.stringify(value, (key, item) => (item && item.$tensor ? tensorText(item.$tensor) : item), 2);
  const oneLine = JSON.stringify(JSON.parse(inside));
  return make("pre", "", unquoted(oneLine.length <= 90 ? oneLine : inside));
}

const DIGITS = {
  fp8_e4m3: 2, fp8_e5m2: 2, int8: 2, bool: 2, fp16: 4, bf16: 4, int16: 4, fp64: 16, int64: 16, complex128: 16,
};

/** A tensor as its type and its words, between marks that `unquoted` takes away together with JSON's quotes. */
function tensorText(tensor) {
  const digits = tensor.bits ?? tensor.head ?? "", width = DIGITS[tensor.dtype] ?? 8;
  const split = digits.match(new RegExp(`.{1,${width}}`, "g")) ?? [];
  const rest = tensor.bits === undefined && tensor.sha256 ? ` ... sha256 ${tensor.sha256}` : "";
  return `\u0001${tensor.dtype}[${tensor.shape.join(", ")}] ${split.join(" ")}${rest}\u0002`;
}

const unquoted = (text) => text.replaceAll('"\\u0001', "").replaceAll('\\u0002"', "");
