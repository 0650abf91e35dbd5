// The filters and the open case in the address of the page, so that a view can be kept and sent. Joined before page.js.

const FIELDS = ["text", "clause", "document", "level"];

/** What the address says after its #, as fields. */
const addressed = () => new URLSearchParams(location.hash.slice(1));

/** The filters as they stand in an address. */
function filtersInAddress() {
  const fields = new URLSearchParams();
  if (followed !== null) fields.set("cause", followed);
  if (chosen.size) fields.set("verdict", [...chosen].join(","));
  for (const name of FIELDS) if ($(name).value.trim()) fields.set(name, $(name).value.trim());
  return fields;
}

/** The part of an address that shows a case under filters as an address has them. */
const addressOfCase = (item, filters) => `#${filters}${filters && "&"}${new URLSearchParams({ case: item.id })}`;

/** Let the address say what is shown, without a step in the history. A case that opened by itself is not told. */
function keepAddress() {
  const fields = filtersInAddress();
  if (current && !openedAlone) fields.set("case", current.id);
  const wanted = String(fields) && `#${fields}`;
  if (wanted !== location.hash) history.replaceState(null, "", location.href.split("#")[0] + wanted);
}

/** Set the filters as an address has them; whether they were others before. */
function takeFilters(fields) {
  const before = String(filtersInAddress());
  const known = new Set([...$("verdicts").children].map((chip) => chip.dataset.verdict));
  chosen.clear();
  for (const name of (fields.get("verdict") ?? "").split(",")) if (known.has(name)) chosen.add(name);
  for (const name of FIELDS) $(name).value = fields.get(name) ?? "";
  const cause = Number(fields.get("cause"));
  followed = data.causes[cause - 1] ? cause : null;
  showChosen();
  return String(filtersInAddress()) !== before;
}

/** Filter as the address says, show the case that it names, and bring what it names into view. */
async function openAddressed(event) {
  const fields = addressed(), name = fields.get("case"), fromList = $("list").contains(document.activeElement);
  const item = name === null ? null : data.cases.find((one) => one.id === name);
  if (item) current = item; // so that filters keep it open
  if (takeFilters(fields) || !event) filter();
  if (!item) {
    if (String(filtersInAddress())) $("cases").scrollIntoView();
    return;
  }
  await openCase(item);
  if (event) $("detail").focus({ preventScroll: true });
  if (!wide.matches) $("detail").scrollIntoView();
  else if (!event || !fromList) (linkOf(item) ?? $("detail")).scrollIntoView();
}

