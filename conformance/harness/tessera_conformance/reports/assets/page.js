// The head of the page, and what is shown first. Joined last.

function showHead() {
  $("implementation").textContent = data.implementation;
  for (const [key, value] of data.facts) $("facts").append(make("div", "", make("dt", "", key), make("dd", "", value)));
  $("claim").className = data.claim;
  $("claim").querySelector("strong").textContent = data.badge;
  $("claim").querySelector("strong").className = data.badge.length > 20 ? "long" : "";
  $("claim").querySelector("span").textContent = data.reason;
  $("scope").append(...data.scope.map((one) => make("li", "", one)));
  if (data.claim === "invalid") {
    $("invalid").textContent = `This report is invalid and supports no claim: ${data.reason}.`;
    $("invalid").hidden = false;
  }
  $("problems").hidden = data.problems.length === 0;
  $("problems").querySelector("ul").append(...data.problems.map((problem) => make("li", "", problem)));
  $("start-stderr").textContent = data.stderr;
  $("start-stderr").hidden = data.stderr === "";
  $("rooflines").hidden = $("rooflines").querySelector("svg") === null;
}

showHead();
showCauses();
showMap();
showFilters();
addEventListener("hashchange", openAddressed);
document.addEventListener("click", (event) => { // an address that is open already is shown again
  if (event.target.closest?.("a")?.getAttribute("href") === location.hash && location.hash) openAddressed(event);
});
await openAddressed();
if (!current && wide.matches && matching[0]?.counts) await openCase(matching[0], true);
$("main").removeAttribute("aria-busy");
