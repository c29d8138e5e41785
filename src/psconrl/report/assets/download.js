/* Saving a chart as shown, with its title and legend, or its numbers. Everything happens in the page. */

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linejoin",
  "font-size", "font-family", "font-weight", "text-anchor", "paint-order"];
const SHARPNESS = 3; // pixels of a PNG per pixel of the page
const FORMULA = /^[=+\-@\t\r]/; // start of a text that a spreadsheet would take for a formula

function saveButtons(chart) {
  const name = (ending) => `${chart.experiment} ${text(chart.panel.title)}`.replace(/[^\p{L}\p{N}]+/gu, "-") + ending;
  const ways = {
    PNG: () => pngOf(chart, (blob) => save(blob, name(".png"))),
    SVG: () => save(new Blob([pictureOf(chart).source], { type: "image/svg+xml" }), name(".svg")),
    CSV: () => save(new Blob([csvOf(chart)], { type: "text/csv" }), name(".csv")),
  };
  const title = (kind) => (kind === "CSV" ? "Save the numbers shown" : `Save the chart as ${kind}`);
  return el("p", { class: "save" }, "Save: ", ...Object.entries(ways).map(([kind, act]) =>
    el("button", { type: "button", class: "small", title: title(kind), click: act }, kind)));
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/* A line for every visible agent and checkpoint; numbers have the digits that the page has. */
function csvOf(chart) {
  const cell = (value) => {
    const words = typeof value === "string" && FORMULA.test(value) ? `'${value}` : text(value);
    return /[",\n\r]/.test(words) ? `"${words.replace(/"/g, '""')}"` : words;
  };
  const short = (value) => (isNumber(value) ? Number(value.toPrecision(6)) : value);
  const rows = chart.shown.flatMap((series) => series.parts.flat().map(
    ({ x, mean, low, high }) => [series.agent, series.runs, x, ...[mean, low, high].map(short)]));
  const header = ["agent", "runs", text(chart.panel.x) || "x", "mean", "low", "high"];
  return [header, ...rows].map((row) => `${row.map(cell).join(",")}\n`).join("");
}

/* The chart as a standalone picture on white: the style sheet is written into every element. */
function pictureOf(chart) {
  document.documentElement.classList.add("light");
  const copy = chart.plot.cloneNode(true);
  const [theirs, ours] = [chart.plot, copy].map((plot) => [...plot.querySelectorAll("*")]);
  theirs.forEach((element, k) => inked(ours[k], getComputedStyle(element)));
  copy.querySelectorAll(".sensor, .cursor").forEach((element) => element.remove());
  const letters = getComputedStyle(chart.plot.querySelector("text") ?? chart.plot).fontFamily;
  const words = (x, y, size, string) =>
    svg("text", { x, y, "font-size": size, "font-family": letters, fill: "#1a1f26" }, string);
  const legend = legendOf(chart, words);
  document.documentElement.classList.remove("light");
  const height = 44 + chart.height + legend.height;
  const size = { width: chart.width + 16, height: height + 16, viewBox: `-8 -8 ${chart.width + 16} ${height + 16}` };
  const place = { x: 0, y: 44, width: chart.width, height: chart.height, overflow: "visible" };
  for (const [key, value] of Object.entries(place)) copy.setAttribute(key, value);
  const title = [chart.experiment, text(chart.panel.title)].filter(Boolean).join(": ");
  const root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", ...size },
    svg("rect", { x: -8, y: -8, width: size.width, height: size.height, fill: "#ffffff" }),
    words(0, 14, 14, shorten(title, chart.width / 1.2)), words(0, 32, 12, text(chart.panel.y)), copy, legend.root);
  return { source: new XMLSerializer().serializeToString(root), width: size.width, height: size.height };
}

function inked(element, style) {
  for (const key of KEPT) element.setAttribute(key, style.getPropertyValue(key));
  for (const key of ["class", "style", "data-agent", "data-black"]) element.removeAttribute(key);
}

/* The legend: line samples with names and numbers of runs, as many per row as fit. */
function legendOf(chart, words) {
  const root = svg("g");
  let [x, y] = [0, 44 + chart.height + 18];
  for (const series of chart.shown) {
    const name = isNumber(series.runs) ? `${series.agent} (${series.runs} runs)` : series.agent;
    const wide = 44 + textWidth(name) + 20;
    if (x > 0 && x + wide > chart.width) [x, y] = [0, y + 18];
    root.append(
      svg("line", { x1: x, x2: x + 36, y1: y - 4, y2: y - 4, stroke: series.look.colour, "stroke-width": 2,
        "stroke-dasharray": series.look.dash || null }),
      words(x + 44, y, 12, name));
    x += wide;
  }
  return { root, height: y - 44 - chart.height + 8 };
}

function pngOf(chart, done) {
  const { source, width, height } = pictureOf(chart);
  const canvas = el("canvas", { width: SHARPNESS * width, height: SHARPNESS * height });
  const image = new Image();
  image.addEventListener("load", () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(done, "image/png");
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
}
