// Theme, keyboard, confirmations, copying. Pages work without it, apart from live parts.
"use strict";
(() => {
  const root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (!target) return;
    if (target.closest("[data-theme-switch]")) {
      root.dataset.theme = isDark() ? "light" : "dark";
      // The server reads it, so that no script has to run before the first paint.
      document.cookie = `odradek_theme=${root.dataset.theme}; Path=/; Max-Age=31536000; SameSite=Lax`;
      document.dispatchEvent(new CustomEvent("odradek:theme"));
    } else if (target.closest("[data-help-open]")) {
      document.getElementById("help").showModal();
    } else if (target.closest("[data-copy], [data-copy-from], [data-copy-link]")) {
      const button = target.closest("[data-copy], [data-copy-from], [data-copy-link]");
      const { copy, copyFrom, copyLink } = button.dataset;
      const label = button.textContent;
      const say = (words) => { button.textContent = words; setTimeout(() => { button.textContent = label; }, 1500); };
      const read = async () => {
        if (copy) return document.getElementById(copy).textContent;
        if (copyLink) return new URL(copyLink, location).href;
        const answer = await fetch(copyFrom);
        if (!answer.ok) throw new Error(answer.statusText);
        return answer.text();
      };
      if (navigator.clipboard) read().then((text) => navigator.clipboard.writeText(text)).then(() => say("Copied"), () => say("Not allowed"));
      else say("Not allowed");
    } else if (target.closest("[data-check-all]")) {
      const all = target.closest("[data-check-all]");
      for (const box of document.querySelectorAll("input[name=record]")) box.checked = all.checked;
      document.dispatchEvent(new CustomEvent("odradek:selection"));
    }
  });

  const places = { o: "/", t: "/topics", g: "/groups", b: "/brokers", x: "/transactions", p: "/pipelines", e: "/examples", a: "/access" };
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const field = event.target instanceof Element && event.target.closest("input, textarea, select");
    if (event.key === "Escape" && field) field.blur();
    if (field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isGoing && places[event.key]) { location.href = places[event.key]; return; }
    isGoing = event.key === "g";
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    } else if (event.key === "?") {
      event.preventDefault();
      document.getElementById("help").showModal();
    } else if (event.key === " " && event.target === document.body) {
      const pause = document.querySelector("[data-tail-switch]");
      if (pause) { event.preventDefault(); pause.click(); }
    }
  });

  // A button that destroys something is enabled by the typed name only; the server checks it again.
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    const input = form.querySelector("input[name=confirmation]");
    const button = form.querySelector("button");
    const update = () => { button.disabled = input.value !== form.dataset.confirm; };
    input.addEventListener("input", update);
    update();
  }

  // The buttons that work on selected records.
  const updateSelection = () => {
    const count = document.querySelectorAll("input[name=record]:checked").length;
    for (const each of document.querySelectorAll("[data-needs-selection]")) each.disabled = !count;
    for (const each of document.querySelectorAll("[data-selection-count]")) each.textContent = count ? `${count} selected` : "none selected";
  };
  document.addEventListener("change", (event) => { if (event.target instanceof Element && event.target.matches("input[name=record]")) updateSelection(); });
  document.addEventListener("odradek:selection", updateSelection);
  document.addEventListener("htmx:afterSwap", updateSelection);
  updateSelection();

  // A panel that has the focus of the keyboard is not replaced, and one in a hidden tab is not loaded.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const isPanel = event.target.id === "panel";
    if (isPanel && (document.hidden || event.target.contains(document.activeElement))) event.preventDefault();
  });
})();
