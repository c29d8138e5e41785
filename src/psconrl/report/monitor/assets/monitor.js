/* The page of the monitor: shows the contents of the file, polls every two seconds, and redraws only what is new. */

const EVERY = 2000; // milliseconds
const FRESH = 15; // seconds after which a file counts as inactive

const given = JSON.parse(document.getElementById("report").textContent);
const view = new View([], []);
const logView = new View([], []); // for values that span orders of magnitude
logView.logY = true;
let shown = ""; // the contents, as text
let sections = []; // sections on the page; they stay while their contents grow, so that the reader keeps the place
let looks = new Map();

const head = document.getElementById("head");
const main = document.getElementById("main");
const status = el("p", { class: "status", role: "status" });

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} minutes ago`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} hours ago` : `${Math.round(seconds / 86400)} days ago`;
}

function say(age) {
  const known = isNumber(age);
  status.className = `status${known && age < FRESH && given.live ? " fresh" : ""}`;
  status.textContent = !given.live ? "A snapshot" : known ? `The file was written ${ago(age)}` : "Waiting for the file";
}

function keysOf(panel) {
  const names = list(panel.series).map((series) => text(series.agent));
  return el("ul", { class: "keys" }, ...names.map((name) => el("li", {}, swatch(looks.get(name)), name)));
}

/* Draw, and put the reader's cursor back where it was, or at the nearest point if that is gone. */
function redraw(chart) {
  const { at } = chart.cursor;
  const reading = at !== undefined && !chart.cursor.tip.hidden;
  chart.draw(chart.panel.log ? logView : view);
  if (!reading) return;
  const stops = chart.cursor.checkpoints();
  if (!stops.length) return;
  chart.cursor.read(stops.reduce((best, stop) => (Math.abs(stop - at) < Math.abs(best - at) ? stop : best)));
}

function sectionOf(section) {
  const charts = list(section.panels).map((panel) => new Chart(panel, looks, text(section.name)));
  for (const { cursor } of charts) cursor.peers = charts.map((chart) => chart.cursor).filter((peer) => peer !== cursor);
  const tables = el("div");
  const root = el("section", { class: "experiment" },
    section.name && el("h2", {}, text(section.name)), tables,
    el("div", { class: "panels" }, ...charts.map((chart) => chart.root)));
  return { root, charts, tables };
}

function fillSection({ charts, tables }, section) {
  tables.replaceChildren(...list(section.tables).map((table) => tableOf(table, looks)));
  charts.forEach((chart, k) => {
    chart.take(section.panels[k], looks);
    chart.root.querySelector(".keys")?.remove();
    chart.root.insertBefore(keysOf(section.panels[k]), chart.stage);
    redraw(chart);
  });
}

const notes = el("p", { class: "notes" });
const body = el("div");
const policy = el("div");
let outline = "";

function show(contents) {
  const title = text(contents.title) || text(contents.file);
  document.title = `${title} - psconrl monitor`;
  looks = new Map(list(contents.looks).map(([name, colour, dash]) => [text(name), { colour, dash }]));
  head.replaceChildren(...[
    el("h1", {}, title), contents.title && el("p", { class: "meta" }, text(contents.file)), status,
    factsOf(contents.facts),
    ...list(contents.warnings).map((line) => el("p", { class: "warning" }, text(line))),
  ].filter(Boolean));
  if (contents.message) {
    outline = "";
    main.replaceChildren(el("p", { class: "empty-report", id: "message" }, text(contents.message)));
    return;
  }
  const parts = list(contents.sections);
  const now = JSON.stringify(parts.map((part) => [part.name, list(part.panels).map((panel) => panel.title)]));
  if (now !== outline) {
    outline = now;
    sections = parts.map(sectionOf);
    body.replaceChildren(...sections.map((section) => section.root));
    main.replaceChildren(notes, body, policy);
  }
  notes.textContent = list(contents.notes).join(" ");
  sections.forEach((section, k) => fillSection(section, parts[k]));
  policy.replaceChildren(...[policyOf(contents.policy)].filter(Boolean));
}

function take(report) {
  say(report.age);
  const now = JSON.stringify(report.contents);
  if (now === shown) return;
  shown = now;
  show(report.contents);
}

async function ask() {
  try {
    const answer = await fetch("data.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    take(await answer.json());
  } catch {
    status.className = "status lost";
    status.textContent = "The monitor does not answer; this is its last state";
  }
  setTimeout(ask, EVERY);
}

take(given);
if (given.live) setTimeout(ask, EVERY);
