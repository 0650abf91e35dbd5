// The list of cases, in blocks whose rows are made as they come into view and dropped again. Joined before page.js.

const ROWS = 50;
/** How far from the window a block is made, and the height of a row until one has been measured. */
const NEAR = "1200px", ROW_HEIGHT = 54;
const wide = matchMedia("(min-width: 1001px)");
let matching = [], current = null;

const nearby = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) (isIntersecting ? fillBlock : emptyBlock)(target);
}, { rootMargin: NEAR });

/** Show the cases that match, the first block at once. */
function showList() {
  nearby.disconnect();
  const nothing = data.cases.length ? "No case matches these filters." : "The report holds no cases.";
  if (!matching.length) return $("list").replaceChildren(make("p", "empty", nothing));
  const blocks = [];
  for (let start = 0; start < matching.length; start += ROWS) {
    blocks.push(Object.assign(make("ol", "block"), { start: start + 1 }));
  }
  fillBlock(blocks[0]);
  $("list").replaceChildren(...blocks);
  const height = blocks[0].offsetHeight / blocks[0].children.length || ROW_HEIGHT;
  for (const block of blocks.slice(1)) { // the first one stays
    block.style.height = `${height * Math.min(ROWS, matching.length - block.start + 1)}px`;
    nearby.observe(block);
  }
}

function fillBlock(block) {
  if (block.firstChild || !matching.length) return;
  const base = String(filtersInAddress());
  block.append(...matching.slice(block.start - 1, block.start - 1 + ROWS).map((item) => listed(item, base)));
  block.style.height = "";
}

function emptyBlock(block) {
  if (!block.firstChild || block.contains(document.activeElement)) return;
  block.style.height = `${block.getBoundingClientRect().height}px`;
  block.replaceChildren();
}

/** The link of a case in the list, made where it was not; none where the filters leave the case out. */
function linkOf(item) {
  const place = matching.indexOf(item), block = $("list").children[Math.floor(place / ROWS)];
  if (place < 0) return null;
  fillBlock(block);
  return block.children[place % ROWS].firstChild;
}

function badge(item) {
  const verdict = item.missing ? NOT_IMPLEMENTED : item.verdict;
  if (item.disposition === "none") return make("span", `verdict is-${verdict}`, words(verdict));
  return make("span", `verdict is-${item.counts ? "fail" : "deviates"}`, words(item.disposition));
}

function listed(item, filters) {
  const about = item.verdict === "pass" ? item.title : item.reason || item.title;
  const parts = [badge(item), make("span", "id", item.id), make("span", "about", about)];
  const link = makeLink("", addressOfCase(item, filters), ...parts);
  if (item === current) link.setAttribute("aria-current", "true");
  return make("li", "", link);
}

/** Mark the open case in the list. */
function markCurrent() {
  for (const link of $("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  if (current) linkOf(current)?.setAttribute("aria-current", "true");
}

/** What is printed: all causes, and of the list the failures, at least one block and at most ten. */
function showPrinted() {
  $("causes").querySelector(".more")?.click();
  const blocks = [...$("list").querySelectorAll(".block")], failing = matching.filter((item) => item.counts).length;
  const printed = Math.min(10, Math.max(1, Math.ceil(failing / ROWS)));
  blocks.forEach((block, at) => (at < printed ? fillBlock : emptyBlock)(block));
  const rest = matching.length - printed * ROWS;
  $("left-out").textContent = rest > 0 ? `and ${plural(rest, "more case")}, which are in the page` : "";
}

addEventListener("beforeprint", showPrinted);
addEventListener("afterprint", () => {
  for (const block of [...$("list").querySelectorAll(".block")].slice(1)) {
    nearby.unobserve(block);
    nearby.observe(block); // tells anew which are in view
  }
});

