/* The page: reads the report, builds every part once, then redraws only what the view changes. */

const report = JSON.parse(document.getElementById("report").textContent);
const experiments = list(report.experiments);
const seriesOf = (experiment) => list(experiment.panels).flatMap((panel) => list(panel.series));
const agents = [...new Set(experiments.flatMap(seriesOf).map((series) => text(series.agent)))];
const looks = new Map(list(report.looks).map(([agent, colour, dash]) => [text(agent), { colour, dash }]));
for (const series of experiments.flatMap(seriesOf)) series.x = list(report.grids)[series.x]; // shared, so stored once
const names = experiments.map((experiment) => text(experiment.name));
const view = new View(agents, names, Math.max(0, names.indexOf(text(report.opens))));

function sectionOf(experiment, index) {
  const charts = list(experiment.panels).map((panel) => new Chart(panel, looks, text(experiment.name)));
  for (const { cursor } of charts) cursor.peers = charts.map((chart) => chart.cursor).filter((peer) => peer !== cursor);
  const place = { id: `experiment-${index}`, role: "tabpanel", "aria-labelledby": `tab-${index}` };
  const root = el("section", { class: "experiment", ...place },
    el("h2", {}, text(experiment.name)),
    experiment.description && el("p", { class: "description" }, text(experiment.description)),
    experiment.finding && el("p", { class: "finding" }, text(experiment.finding)),
    factsOf(experiment.facts),
    charts.length > 0 && el("div", { class: "panels" }, ...charts.map((chart) => chart.root)),
    ...list(experiment.tables).map((table) => tableOf(table, looks)),
    mapsOf(experiment.maps));
  return { root, charts, agents: new Set(seriesOf(experiment).map((series) => text(series.agent))) };
}

const sections = experiments.map(sectionOf);
const body = el("div", { id: "experiments" }, ...sections.map((section) => section.root));
const controls = new Controls(view, experiments, looks, update);

function drawAll(width) {
  for (const { charts } of sections) for (const chart of charts) chart.draw(view, width);
}

function update() {
  const all = view.experiment === "all";
  sections.forEach((section, index) => { section.root.hidden = !all && index !== view.experiment; });
  drawAll();
  controls.show(all ? new Set(agents) : sections[view.experiment].agents);
  view.write();
}

const HELP = [
  "Lines are means over runs, shaded bands their 95% intervals.",
  "A curve far from the others is cut off: triangles mark where it leaves the axis, and a line above the axis says where",
  "it ends. A band that leaves the axis is cut off too.",
  "Dashed horizontal lines are references.",
  "Point at a chart, or focus it and press the arrow keys (with shift: ten at a time), to read a checkpoint's values.",
  "In the legend, a checkbox shows or hides an agent in every chart, and a click on its name shows it alone.",
  "Tables always list every agent; a click on a heading sorts.",
  "Where a chart has values ≤ 0, its log y axis is symmetric and linear near zero, and the chart says so.",
  "The buttons PNG, SVG and CSV below a chart save it, or its numbers, as shown.",
  "The address of this page includes the view: a copied link shows the same.",
];
const help = el("details", { class: "help" }, el("summary", {}, "How to read the charts"), el("p", {}, HELP.join(" ")));

document.title = text(report.title) || "Report";
document.getElementById("head").append(...headerOf(report));
document.getElementById("foot").append(...footerOf(report, looks));
if (experiments.length) {
  document.getElementById("main").append(controls.row, controls.root, help, body);
  view.read(location.hash);
  update();
  window.addEventListener("hashchange", () => { view.read(location.hash); update(); });
  window.addEventListener("beforeprint", () => drawAll(PAPER_WIDTH));
  window.addEventListener("afterprint", () => drawAll());
} else {
  document.getElementById("main").append(el("p", { class: "empty-report" }, "This report has no experiments."));
}
