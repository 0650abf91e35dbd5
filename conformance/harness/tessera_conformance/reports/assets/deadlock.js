// The report of a deadlock (schemas/wsp_report.schema.json) as a graph: who waits at the left, for what at the right,
// the cycle in colour. Joined before case.js into one script.

const GRAPH = { row: 46, box: 30, left: 20, right: 480, width: 260, whole: 760, most: 24, longest: 40 };

function svg(tag, attributes, ...children) {
  const element = document.createElementNS($("svg").namespaceURI, tag); // the page has no address in it
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The graph of what a call returned, where that is a run that ended in a deadlock with a report that can be read. */
function deadlockGraph(returned) {
  try {
    return returned?.outcome === "deadlock" ? drawnDeadlock(returned.deadlock) : null;
  } catch {
    return null; // an implementation may answer anything; the text of the answer is shown in any case
  }
}

function drawnDeadlock(report) {
  const cycle = report.cycle.map(String), waits = report.waiting.map(waitOf);
  const inCycle = (name) => cycle.includes(name);
  const first = [...waits].sort((a, b) => inCycle(b.who) - inCycle(a.who)).slice(0, GRAPH.most);
  const around = cycle.map((name, place) => ({ who: name, what: cycle[(place + 1) % cycle.length] }));
  const edges = new Map();
  for (const { who, what, reason } of [...around, ...first]) {
    if (what) edges.set(`${who}\n${what}`, { who, what, reason, red: around.some((a) => a.who === who && a.what === what) });
  }
  const names = [...new Set([...first.flatMap(({ who, what }) => [who, what]), ...cycle])].filter(Boolean);
  const places = columns(names);
  const rows = 1 + Math.max(0, ...[...places.values()].map(({ row }) => row));
  const title = `deadlock at ${report.time}: ${waits.length} wait` + (cycle.length ? `, a cycle of ${cycle.length}` : "");
  return svg(
    "svg", { class: "deadlock", viewBox: `0 0 ${GRAPH.whole} ${rows * GRAPH.row}`, role: "img", "aria-label": title },
    svg("title", {}, title),
    svg("defs", {}, ...["wait", "cycle"].map(arrowHead)),
    ...[...edges.values()].flatMap((edge) => drawnEdge(edge, places)),
    ...[...places].flatMap(([name, place]) => drawnNode(name, place, inCycle(name))),
  );
}

/** Who waits for what, as the cycle names them; who waits for tasks has an edge in the cycle alone. */
function waitOf({ task, process, reason, for: subject }) {
  const kind = reason.startsWith("CHANNEL") ? "channel" : "resource";
  return {
    who: task === undefined ? `process ${process}` : `task ${task}`,
    what: reason === "TASK_WAIT" ? "" : `${kind} ${subject}`,
    reason,
  };
}

/** Processes and tasks at the left, what they wait for at the right. */
function columns(names) {
  const acts = (name) => name.startsWith("process ") || name.startsWith("task ");
  const column = (x, members) => members.map((name, row) => [name, { x, row, y: row * GRAPH.row + 8 }]);
  const left = names.filter(acts), right = names.filter((name) => !acts(name));
  return new Map([...column(GRAPH.left, left), ...column(GRAPH.right, right)]);
}

function drawnNode(name, { x, y }, red) {
  const short = name.length > GRAPH.longest ? `${name.slice(0, GRAPH.longest)}...` : name;
  return [
    svg("rect", { class: red ? "cycle" : "wait", x, y, width: GRAPH.width, height: GRAPH.box, rx: 4 }),
    svg("text", { x: x + 8, y: y + 20 }, svg("title", {}, name), short),
  ];
}

/** From box to box: across, or beside the column where both are in one. */
function drawnEdge({ who, what, reason, red }, places) {
  const from = places.get(who), to = places.get(what), middle = GRAPH.box / 2;
  const kind = red ? "cycle" : "wait";
  const line = { class: kind, "marker-end": `url(#deadlock-${kind})` };
  if (from.x === to.x) {
    const side = from.x === GRAPH.left ? from.x + GRAPH.width : from.x, out = side + (from.x === GRAPH.left ? 40 : -40);
    const d = `M ${side} ${from.y + middle} C ${out} ${from.y + middle} ${out} ${to.y + middle} ${side} ${to.y + middle}`;
    return [svg("path", { ...line, d })];
  }
  const across = from.x < to.x, shift = across ? -5 : 5;
  const x1 = from.x + (across ? GRAPH.width : 0), x2 = to.x + (across ? 0 : GRAPH.width);
  const y1 = from.y + middle + shift, y2 = to.y + middle + shift;
  const label = reason ? [svg("text", { class: "reason", x: x1 + 8, y: y1 - 4 }, reason)] : [];
  return [svg("line", { ...line, x1, y1, x2, y2 }), ...label];
}

function arrowHead(kind) {
  const box = { viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" };
  return svg("marker", { ...box, id: `deadlock-${kind}`, class: kind }, svg("path", { d: "M 0 0 L 8 4 L 0 8 z" }));
}
