// Before the first paint: the theme that was chosen, or else that of the system.
"use strict";
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("odradek-theme"); } catch { /* a browser may refuse storage */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
