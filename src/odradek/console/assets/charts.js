// The charts of the overview: samples of an hour arrive as events, and are kept for an hour.
"use strict";
(() => {
  const section = document.querySelector("[data-stream]");
  if (!section || typeof uPlot === "undefined") return;
  const HOUR = 3600;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600]; // seconds between two marks of the time
  // Between two marks of a value: their texts have one decimal, which would round 0.25.
  const VALUE_STEPS = Array.from({ length: 17 }, (_, power) => [1, 2, 5].map((digit) => Number(`${digit}e${power - 1}`))).flat();
  const data = { time: [] };
  const charts = [];
  let range = 300;

  const short = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size < 10 && size > 0) return value.toFixed(1);
    if (size < 1000) return value.toFixed(0);
    for (const [unit, divisor] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]) {
      const scaled = value / divisor;
      if (Math.abs(scaled) < 1000) return `${scaled.toFixed(Math.abs(scaled) < 100 ? 1 : 0)} ${unit}`;
    }
    return value.toExponential(1);
  };
  const withUnit = (value, unit) => {
    if (unit === "ms") return value === null || value === undefined ? "–" : value < 1000 ? `${short(value)} ms` : `${short(value / 1000)} s`;
    if (unit !== "bytes" || value === null || value === undefined) return short(value);
    const text = short(value);
    return text.includes(" ") ? `${text.replace(" k", " K")}B` : `${text} B`;
  };
  const axisText = (unit) => (_chart, values) => values.map((value) => withUnit(value, unit).replace(/\.0 /, " ").replace(/\.0$/, ""));
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // A short history fills the width, from one minute on.
  const span = () => {
    const end = data.time.at(-1) ?? Date.now() / 1000;
    return [Math.max(end - range, Math.min(data.time[0] ?? end, end - 60)), end];
  };

  const draw = (figure) => {
    const place = figure.querySelector(".plot");
    const unit = figure.dataset.unit;
    const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px " + color("--sans") };
    const chart = new uPlot({
      width: Math.max(place.clientWidth, 100), height: 172, legend: { show: false }, padding: [8, 28, 0, 0],
      cursor: { y: false, points: { size: 7 } },
      scales: { x: { time: true, range: span },
                y: { range: (_chart, _low, high) => [0, Math.max(high * 1.15 || 0, unit === "bytes" ? 1000 : 1)] } },
      axes: [{ ...axis, size: 26, space: 62, incrs: STEPS, values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] }, { ...axis, size: 54, space: 30, incrs: VALUE_STEPS, values: axisText(unit) }],
      series: [{}, { stroke: color("--accent"), width: 1.75, fill: color("--accent-fill"), points: { show: false }, spanGaps: false }],
      hooks: { setCursor: [(chart) => show(figure, chart.cursor.idx)] },
    }, [[], []], place);
    charts.push({ figure, chart, place });
  };
  const show = (figure, index) => {
    const values = data[figure.dataset.chart] ?? [];
    figure.querySelector("output").textContent = withUnit(values[index ?? values.length - 1], figure.dataset.unit);
  };
  const update = () => {
    for (const { figure, chart } of charts) {
      chart.setData([data.time, data[figure.dataset.chart] ?? []]);
      if (chart.cursor.idx === null || chart.cursor.idx === undefined || chart.cursor.left < 0) show(figure, null);
    }
  };
  const redraw = () => {
    while (charts.length) charts.pop().chart.destroy();
    for (const figure of section.querySelectorAll("[data-chart]")) draw(figure);
    update();
  };

  odradekStream(() => section.dataset.stream, "samples", (samples) => {
    // A clock that was set back has begun another history.
    if (samples.time.at(-1) <= data.time.at(-1) - 60) for (const values of Object.values(data)) values.length = 0;
    const last = data.time.at(-1) ?? 0;
    samples.time.forEach((time, index) => {
      if (time <= last) return;
      for (const name of Object.keys(samples)) (data[name] ??= []).push(samples[name][index]);
    });
    while (data.time.length && data.time[0] < data.time.at(-1) - HOUR) for (const values of Object.values(data)) values.shift();
    update();
  });
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-range]");
    if (!button) return;
    range = Number(button.dataset.range);
    for (const each of document.querySelectorAll("[data-range]")) each.setAttribute("aria-pressed", String(each === button));
    update();
  });
  new ResizeObserver(() => { for (const { chart, place } of charts) chart.setSize({ width: Math.max(place.clientWidth, 100), height: 172 }); }).observe(section);
  document.addEventListener("odradek:theme", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
})();
