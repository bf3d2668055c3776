// The live parts of the records page: the tail with its pause, the search with its progress, one record in a drawer.
"use strict";
(() => {
  const KEPT_ROWS = 300;
  const WAITING_EVENTS = 3; // of at most 100 rows each
  const REST = 3;
  const body = () => document.querySelector("table.records tbody");
  const status = document.querySelector("[data-stream-status]");
  const progress = document.querySelector("[data-stream-progress]");
  const stopButton = document.querySelector("[data-stop-search]");
  const furtherLink = document.querySelector("[data-search-further]");
  const tailButton = document.querySelector("[data-tail-switch]");
  const number = new Intl.NumberFormat("en-US");
  const records = (count) => `${number.format(count)} record${count === 1 ? "" : "s"}`;
  let stream = null;
  let waiting = [], shown = 0, isDrawing = false; // of the tail: the newest rows that are not drawn, and how many are

  const close = () => { if (stream) stream.close(); stream = null; waiting = []; };
  // The server has escaped the rows; nothing but assets of the console may run in this page.
  const addRows = (html, isNewestFirst) => {
    if (!html) return;
    const table = body();
    table.closest("table").hidden = false;
    document.querySelector("[data-empty]")?.remove();
    const before = table.rows.length;
    table.insertAdjacentHTML(isNewestFirst ? "afterbegin" : "beforeend", html);
    shown += table.rows.length - before;
    // With the white space between rows, which would stay when they are removed alone.
    if (isNewestFirst && table.rows.length > KEPT_ROWS) for (const last = table.rows[KEPT_ROWS - 1]; last.nextSibling;) last.nextSibling.remove();
  };
  // The tail rests three times as long as drawing took, and drops rows that wait for longer: events must not pile up in
  // a browser that is slower than the stream. The time includes layout and paint, which end before the next frame.
  const drawTail = () => {
    if (isDrawing || !waiting.length) return;
    isDrawing = true;
    const began = performance.now();
    addRows(waiting.join(""), true);
    waiting = [];
    requestAnimationFrame(() => requestAnimationFrame(() => {
      setTimeout(() => { isDrawing = false; drawTail(); }, REST * (performance.now() - began));
    }));
  };
  const open = (address, onRows) => {
    close();
    stream = new EventSource(address);
    stream.addEventListener("rows", (message) => {
      const taken = JSON.parse(message.data);
      onRows(taken);
      if (taken.done) close();
    });
    stream.onerror = () => { status.textContent = "The stream has ended: too many are open, or the console has stopped."; close(); setTail(false); };
  };

  const setTail = (isOn) => {
    tailButton.setAttribute("aria-pressed", String(isOn));
    tailButton.querySelector("[data-tail-label]").textContent = isOn ? "Pause" : "Live tail";
  };
  tailButton.addEventListener("click", () => {
    if (tailButton.getAttribute("aria-pressed") === "true") {
      close(); setTail(false); status.textContent += ", paused";
      return;
    }
    const fields = new URLSearchParams(new FormData(document.getElementById("query")));
    for (const name of ["start", "at", "limit"]) fields.delete(name);
    progress.hidden = stopButton.hidden = furtherLink.hidden = true;
    let before = 0, since = performance.now();
    shown = 0;
    status.textContent = "Waiting for new records";
    setTail(true);
    open(`${tailButton.dataset.tail}?${fields}`, (taken) => {
      if (taken.html) waiting = [taken.html, ...waiting].slice(0, WAITING_EVENTS);
      drawTail();
      const seconds = (performance.now() - since) / 1000;
      if (taken.failure) { status.textContent = taken.failure; setTail(false); return; }
      if (taken.seen && seconds > 0.9) {
        const rate = (taken.seen - before) / seconds;
        before = taken.seen; since = performance.now();
        const skipped = taken.matched > shown ? `, ${number.format(taken.matched - shown)} not shown` : "";
        status.textContent = `${records(taken.matched)}, ${number.format(Math.round(rate))}/s${skipped}`;
        if (taken.notice) status.textContent += `; ${taken.notice}`;
      } else if (taken.notice && !taken.seen) {
        status.textContent = taken.notice;
      }
    });
  });
  tailButton.disabled = false; // the page comes with a disabled one: a click before this script would be lost

  const found = document.querySelector("[data-search-stream]");
  if (found) {
    progress.hidden = stopButton.hidden = false;
    status.textContent = "Searching";
    open(found.dataset.searchStream, (taken) => {
      addRows(taken.html, false);
      const share = taken.done && !taken.failure ? 100 : taken.total ? Math.min(100, 100 * taken.seen / taken.total) : 0;
      progress.value = share;
      const counts = `${number.format(taken.matched)} found in ${number.format(taken.seen)} of ${records(Math.max(taken.total, taken.seen))}`;
      status.textContent = taken.failure ? `${counts}: ${taken.failure}` : counts;
      if (taken.further) {
        furtherLink.href = taken.further;
        furtherLink.hidden = false;
      }
      if (taken.empty) {
        body().closest("table").hidden = true;
        found.insertAdjacentHTML("beforeend", taken.empty);
      }
      if (taken.done) progress.hidden = stopButton.hidden = true;
    });
    stopButton.addEventListener("click", () => { close(); progress.hidden = stopButton.hidden = true; status.textContent += ", stopped"; });
  }

  // A record in a drawer; the link works without it.
  const drawer = document.getElementById("record-dialog");
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("a[data-record]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const form = document.querySelector("#query select[name=format]").value;
    const address = new URL(link.href);
    if (!address.searchParams.has("format")) address.searchParams.set("format", form);
    htmx.ajax("GET", address.pathname + address.search, { target: "#record", swap: "innerHTML" }).then(() => { if (!drawer.open) drawer.showModal(); });
  });
  drawer.addEventListener("click", (event) => { if (event.target === drawer) drawer.close(); });

  // Fields that other fields make useless are hidden.
  const form = document.getElementById("query");
  const update = () => {
    form.querySelector("[data-for-start]").hidden = !["offset", "before", "time"].includes(form.elements.start.value);
    form.querySelector("[data-for-field]").hidden = !["header", "json"].includes(form.elements.field.value);
  };
  form.addEventListener("change", update);
  update();
})();
