// The keys: / filters, j and k go through the list, o opens, ? lists the keys. Joined before page.js.

/** The case that the keyboard is at: that of the link in focus, or the open one. */
function itemAtKeyboard() {
  const link = document.activeElement.closest?.("#list a");
  if (!link) return current && matching.includes(current) ? current : null;
  const row = link.parentElement;
  return matching[row.parentElement.start - 1 + [...row.parentElement.children].indexOf(row)];
}

/** Put the keyboard on the case so many places further, or on the first one. */
function step(places) {
  const at = itemAtKeyboard();
  const next = at ? matching[matching.indexOf(at) + places] : matching[0];
  if (next) linkOf(next).focus();
}

function focusList() {
  const item = itemAtKeyboard() ?? matching[0];
  if (item) linkOf(item).focus();
}

const KEYS = {
  "/": () => $("text").focus(),
  "j": () => step(1),
  "k": () => step(-1),
  "o": () => document.activeElement.closest?.("#list a")?.click(),
  "?": () => $("keys").showModal(),
};
$("show-keys").addEventListener("click", KEYS["?"]);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (!typing && Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  } else if (event.key === "Escape" && (typing || $("detail").contains(event.target))) {
    focusList();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && document.activeElement.closest?.("#list a")) {
    event.preventDefault();
    step(event.key === "ArrowDown" ? 1 : -1);
  }
});

