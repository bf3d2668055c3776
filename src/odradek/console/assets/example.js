// The page of an example: states of entities, tiles, episodes, and the readings of the chosen entity, every second.
"use strict";
(() => {
  const root = document.querySelector("[data-example]");
  if (!root || typeof uPlot === "undefined") return;
  const SHOWN_S = 180, KEPT_S = 300, HEIGHT = 172;
  const grid = document.querySelector("[data-entities]");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const tiles = [...document.querySelectorAll("[data-tile]")];
  const cells = new Map();
  for (const label of grid.querySelectorAll("label")) cells.set(label.querySelector("input").value, label);
  let chosen = root.dataset.entity;
  const figures = [...root.querySelectorAll("[data-chart]")];
  const nothing = () => ({ time: [], values: figures.map(() => []) });
  let data = nothing();
  let charts = [];
  let stream = null; // opened at the end, when the page can show its events

  const limitLines = (low, high) => (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.strokeStyle = color("--bad");
    ctx.setLineDash([5, 4]);
    for (const limit of [low, high]) {
      const y = plot.valToPos(limit, "y", true);
      ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
    }
    ctx.restore();
  };
  const draw = (figure) => {
    const place = figure.querySelector(".plot");
    const low = Number(figure.dataset.low), high = Number(figure.dataset.high);
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px " + color("--sans") };
    const chart = new uPlot({
      width: Math.max(place.clientWidth, 100), height: HEIGHT, legend: { show: false }, padding: [8, 28, 0, 0],
      cursor: { y: false, points: { size: 7 } },
      scales: { x: { time: true, range: () => { const now = data.time.at(-1) ?? Date.now() / 1000; return [Math.max(now - SHOWN_S, Math.min(data.time[0] ?? now, now - 30)), now]; } },
                y: { range: (_chart, least, most) => { const room = (high - low) * 0.08; return [Math.min(least ?? low, high - (high - low) * 0.6) - room, Math.max(most ?? high, high) + room]; } } },
      axes: [{ ...axis, size: 26, space: 70, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] }, { ...axis, size: 46, space: 36 }],
      series: [{}, { stroke: color("--accent"), width: 1.75, points: { show: false }, spanGaps: true }],
      hooks: { draw: [limitLines(low, high)] },
    }, [[], []], place);
    charts.push({ figure, chart, place });
  };
  const update = () => {
    for (const [index, { figure, chart }] of charts.entries()) {
      const values = data.values[index];
      chart.setData([data.time, values]);
      const last = values.findLast((value) => value !== null);
      const output = figure.querySelector("output");
      output.textContent = last === undefined ? "–" : `${last.toFixed(1)} ${figure.dataset.unit}`;
      output.classList.toggle("beyond", last > Number(figure.dataset.high) || last < Number(figure.dataset.low));
    }
  };
  const redraw = () => {
    for (const { chart } of charts) chart.destroy();
    charts = [];
    for (const figure of figures) draw(figure);
    update();
  };

  const counts = new Map();
  for (const each of document.querySelectorAll("[data-count]")) counts.set(each.dataset.count, each);
  const showEntities = (entities) => {
    document.querySelector("[data-no-entities]").hidden = entities.length > 0;
    let hasNew = false;
    for (const [name, state] of entities) {
      let label = cells.get(name);
      if (!label) {
        label = document.createElement("label");
        const input = document.createElement("input");
        Object.assign(input, { type: "radio", name: "entity", value: name, checked: name === chosen });
        const text = document.createElement("span"), said = document.createElement("span");
        text.textContent = name;
        said.className = "hidden"; // for those who do not see colours
        label.append(input, text, said);
        cells.set(name, label);
        hasNew = true;
      }
      const said = `, ${state}`, place = label.querySelector(".hidden");
      if (place.textContent === said) continue;
      label.className = `entity ${counts.get(state).dataset.color}`;
      place.textContent = said;
    }
    if (hasNew) for (const [name] of entities) grid.append(cells.get(name));  // they come in order
  };
  const take = (turn) => {
    if (!chosen && turn.chosen) choose(turn.chosen, false);
    if (turn.entities) showEntities(turn.entities);
    for (const [name, count] of Object.entries(turn.counts ?? {})) counts.get(name).textContent = count;
    for (const [index, [, text, note]] of (turn.tiles ?? []).entries()) {
      tiles[index].querySelector(".figure").textContent = text;
      tiles[index].querySelector(".faint span").textContent = note;
    }
    // The server has escaped the rows.
    const episodes = document.querySelector("[data-episodes]");
    if (turn.episodes !== undefined && episodes) episodes.innerHTML = turn.episodes;
    const trouble = document.querySelector("[data-trouble]");
    trouble.hidden = !turn.trouble;
    trouble.textContent = turn.trouble;
    trouble.className = `notice ${turn.tone}`;
    if (turn.chosen === chosen && turn.points.time.length) {
      const last = data.time.at(-1) ?? 0; // after a new connection the server sends all points again
      turn.points.time.forEach((time, index) => {
        if (time > last) for (const [chart, values] of [[-1, data.time], ...data.values.entries()]) values.push(chart < 0 ? time : turn.points.values[chart][index]);
      });
      while (data.time.length && data.time[0] < data.time.at(-1) - KEPT_S) for (const values of [data.time, ...data.values]) values.shift();
      update();
    }
    root.dataset.points = String(data.time.length);
    root.dataset.turns = String(Number(root.dataset.turns ?? 0) + 1);
  };
  const choose = (name, reopens = true) => {
    chosen = name;
    for (const each of document.querySelectorAll("[data-chosen]")) each.textContent = name;
    const cell = cells.get(name);
    if (cell) cell.querySelector("input").checked = true;
    if (!reopens) return;
    data = nothing();
    history.replaceState(null, "", `${root.dataset.page}?${new URLSearchParams({ entity: name })}`);
    update();
    stream.reopen();
  };
  grid.addEventListener("change", (event) => choose(event.target.value));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest("[data-episodes] a");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(link.dataset.entity);
  });
  new ResizeObserver(() => { for (const { chart, place } of charts) chart.setSize({ width: Math.max(place.clientWidth, 100), height: HEIGHT }); }).observe(root);
  document.addEventListener("odradek:theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
  stream = odradekStream(() => `${root.dataset.stream}?${new URLSearchParams({ entity: chosen })}`, "turn", take);
})();
