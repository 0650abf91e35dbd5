// The filters and the open case in the address of the page, so that a view can be kept and sent. Joined before page.js.

const FIELDS = ["text", "clause", "document", "level"];

/** What the address says after its #, as fields. */
const addressed = () => new URLSearchParams(location.hash.slice(1));

/** The filters as they stand in an address. */
function filtersInAddress() {
  const fields = new URLSearchParams();
  if (chosen.size) fields.set("verdict", [...chosen].join(","));
  for (const name of FIELDS) if ($(name).value.trim()) fields.set(name, $(name).value.trim());
  return fields;
}

/** The part of an address that shows a case, or none, under these filters. */
function addressOf(item) {
  const fields = filtersInAddress();
  if (item) fields.set("case", item.id);
  return fields.size ? `#${fields}` : "";
}

/** Let the address say what is shown, without a step in the history. */
function keepAddress() {
  const wanted = addressOf(current);
  if (wanted !== location.hash) history.replaceState(null, "", location.href.split("#")[0] + wanted);
}

/** Set the filters as an address has them; whether they were others before. */
function takeFilters(fields) {
  const before = String(filtersInAddress());
  const known = new Set([...$("verdicts").children].map((chip) => chip.dataset.verdict));
  chosen.clear();
  for (const name of (fields.get("verdict") ?? "").split(",")) if (known.has(name)) chosen.add(name);
  for (const name of FIELDS) $(name).value = fields.get(name) ?? "";
  for (const chip of $("verdicts").children) chip.setAttribute("aria-pressed", String(chosen.has(chip.dataset.verdict)));
  return String(filtersInAddress()) !== before;
}

