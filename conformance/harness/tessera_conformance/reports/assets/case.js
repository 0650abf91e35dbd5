
"use strict";

// One case in full: what was sent, what came back, what was expected. Joined before page.js into one script.

/** The blocks of details, and by block the cases that have been unpacked. */
const blocks = $("details").textContent.split("\n"), unpackedBlocks = new Map();

/** What the list does not show of a case. */
async function detailsOf(item) {
  const { place } = item, block = Math.floor(place / data.block);
  if (!unpackedBlocks.has(block)) unpackedBlocks.set(block, unpacked(blocks[block]).then((text) => text.split("\n")));
  return parsed((await unpackedBlocks.get(block))[place % data.block]);
}

/** JSON in which integers beyond 2 ** 53, such as pointers, keep their digits, where the browser can. */
function parsed(text) {
  return JSON.parse(text, (key, value, context) => {
    const rounded = Number.isInteger(value) && !Number.isSafeInteger(value);
    return rounded && context && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
  });
}

/** Whether the case that is open was opened by the page, not by a reader. */
let openedAlone = false;

async function openCase(item, alone = false) {
  current = item;
  openedAlone = alone;
  markCurrent();
  const detail = await detailsOf(item);
  if (current !== item) return; // another was opened meanwhile
  keepAddress();
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
  markCurrent();
  keepAddress();
}

/** Where the panel covers the list, the way back to it. */
function back() {
  return makeButton("back", "Back to the list", () => {
    const item = current;
    closeCase();
    linkOf(item)?.focus();
  });
}

const standardError = (text) => [make("p", "field", "standard error"), make("pre", "stderr", text)];

const part = (title, ...children) => [make("h3", "", title), ...children];
const listPart = (title, name, items) => (items.length ? part(title, make("ol", name, ...items)) : []);

function cited(id) {
  const clause = clauses.get(id);
  if (!clause) return make("li", "", make("span", "bits", id), make("span", "", "not in this registry"));
  const place = [clause.level, documentTitles.get(clause.document), sectionName(clause)].join(", ");
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

/** A command, which breaks between its words, and a button that copies it. */
function command(text) {
  const whole = text.split(" ").flatMap((word, at) => [at ? " " : "", make("span", "", word)]);
  const shown = make("pre", "", ...whole), copy = makeButton("copy", "Copy", () => {
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
    for (const kind of difference.kinds ?? []) {
      const first = `first [${kind.index.join(", ")}]: ${kind.actual_bits} for ${kind.expected_bits}`;
      rows.push([kind.kind, `${plural(kind.elements, "element")}, ${first}`]);
    }
  } else if (difference) {
    rows.push(["difference", difference.reason]);
  }
  const { expected, actual } = check;
  const same = JSON.stringify(expected) === JSON.stringify(actual);
  if (check.passed && same) rows.push(["as expected", shown(actual)]);
  else rows.push(["expected", shown(expected, actual)], ["found", shown(actual, expected)]);
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

/** Any value: text as text, tensors element by element, everything else as JSON; where it differs from `other`, marked. */
function shown(value, other) {
  if (typeof value === "string") return value.includes("\n") ? make("pre", "", value) : make("span", "", value);
  if (value?.$tensor) return make("pre", "", tensorRows(value.$tensor, other?.$tensor));
  const tensors = [];
  const inside = JSON.stringify(value, (key, item) => {
    return item && item.$tensor ? `\u0001${tensors.push(item.$tensor) - 1}\u0002` : item;
  }, 2);
  const oneLine = JSON.stringify(parsed(inside)); // as short as it is with the places of tensors
  const pieces = (oneLine.length <= 90 ? oneLine : inside).split(/"\\u0001(\d+)\\u0002"/);
  return make("pre", "", ...pieces.map((piece, at) => (at % 2 ? tensorRows(tensors[piece]) : piece)));
}

