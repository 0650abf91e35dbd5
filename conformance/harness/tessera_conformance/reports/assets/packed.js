"use strict";

// The islands of data, which are compressed. Joined before the others into one script.

const $ = (id) => document.getElementById(id);

/** The text that a gzip stream in base64 holds. */
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

if (typeof DecompressionStream === "undefined") {
  $("invalid").textContent = "This browser is too old for the page: it has no DecompressionStream. " +
    "The file summary.md beside it says the same without.";
  $("invalid").hidden = false;
}
const data = JSON.parse(await unpacked($("data").textContent));

