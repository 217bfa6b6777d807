// Draws the table of a chart as lines, in the page's own colours, and again when these change. The table
// stays below it; without this script it is all that there is.
"use strict";

const DASHES = [[], [6, 4], [2, 3]]; // lines are told apart without colour
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]; // steps of an axis that counts
const charts = new Map();

function draw(figure) {
  const plot = figure.querySelector(".plot");
  const table = figure.querySelector("[data-numbers] table");
  const role = (name) => getComputedStyle(plot).getPropertyValue(name).trim();
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  const data = heads.map((_, column) => rows.map((row) => (row[column] === "" ? null : Number(row[column]))));
  const colour = (name) => {
    plot.style.color = `var(${name})`;
    return getComputedStyle(plot).color;
  };
  const lines = [colour("--accent"), colour("--bar-kept"), colour("--bar")];
  const ink = colour("--ink-soft");
  const hairline = colour("--line");
  const font = `12px ${role("--site")}`;
  const axis = (label) => ({ label, stroke: ink, font, labelFont: font, labelSize: 18, grid: { stroke: hairline, width: 1 }, ticks: { stroke: hairline, width: 1 } });
  charts.get(figure)?.destroy();
  const chart = new uPlot({
    width: Math.max(240, plot.clientWidth),
    height: 200,
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : 1] } },
    axes: [{ ...axis(heads[0]), incrs: data[0].every(Number.isInteger) ? WHOLE : undefined }, { ...axis(), size: 56 }],
    legend: { live: false },
    cursor: { show: false },
    series: [{}, ...heads.slice(1).map((label, number) => ({
      label, stroke: lines[number % 3], width: 2, dash: DASHES[number % 3], points: { show: rows.length < 40, size: 5 },
    }))],
  }, data, plot);
  charts.set(figure, chart);
}

function drawAll() {
  for (const figure of charts.keys()) if (!figure.isConnected) { charts.get(figure).destroy(); charts.delete(figure); }
  document.querySelectorAll("[data-chart]").forEach(draw);
}

document.addEventListener("htmx:load", ({ target }) => target.querySelectorAll?.("[data-chart]").forEach(draw));
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => detail.target.querySelectorAll("[data-chart]").forEach(draw));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resized;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAll, 150); });
addEventListener("beforeprint", drawAll);
drawAll();
