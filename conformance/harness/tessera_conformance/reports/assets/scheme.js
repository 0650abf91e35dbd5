// Light or dark: as the system has it, until a reader chooses. Joined before page.js.

const systemDark = matchMedia("(prefers-color-scheme: dark)");
let readersScheme = null;

const otherScheme = () => ((readersScheme ?? (systemDark.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
const nameScheme = () => ($("scheme").textContent = otherScheme() === "dark" ? "Dark" : "Light");

$("scheme").addEventListener("click", () => {
  readersScheme = otherScheme();
  document.documentElement.dataset.scheme = readersScheme;
  nameScheme();
});
systemDark.addEventListener("change", nameScheme);
nameScheme();

