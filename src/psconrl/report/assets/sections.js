/* The static parts of the page: facts, tables, maps, lists. */

const NUMERIC = /^\s*[<>≤≥~±+\-−]*\s*\d[\d,.\s]*(e[+\-−]?\d+)?/i;

/* The sort key of a cell: its number if it starts with one, otherwise NaN. */
function numberOf(cell) {
  if (typeof cell === "number") return cell;
  const found = typeof cell === "string" ? cell.match(NUMERIC) : null;
  return found ? parseFloat(found[0].replace(/−/g, "-").replace(/[<>≤≥~±,\s]/g, "")) : NaN;
}

const blank = (cell) => cell === null || cell === undefined || cell === "" || cell === "–" || cell === "-";

function cellText(cell, decimals = null) {
  if (blank(cell)) return "–";
  if (typeof cell !== "number") return String(cell);
  if (decimals === null && !Number.isInteger(cell)) return pretty(cell);
  const places = { minimumFractionDigits: decimals ?? 0, maximumFractionDigits: decimals ?? 0 };
  return minus(cell.toLocaleString("en-US", places));
}

/* The number of decimals of a column: four digits of its largest number, at least two of its smallest. */
function decimalsOf(cells) {
  const sizes = cells.filter((cell) => typeof cell === "number" && cell !== 0).map(Math.abs);
  if (sizes.every((size) => Number.isInteger(size))) return null;
  const power = (size) => Math.floor(Math.log10(size));
  const wanted = Math.max(0, 3 - power(Math.max(...sizes)), 1 - power(Math.min(...sizes)));
  return wanted <= 6 ? wanted : null;
}

function tableOf(table, looks) {
  const rows = list(table.rows).map(list);
  const width = Math.max(list(table.header).length, ...rows.map((row) => row.length));
  const numeric = Array.from({ length: width }, (_, k) => {
    const cells = rows.map((row) => row[k]).filter((cell) => !blank(cell));
    return cells.length > 0 && cells.every((cell) => !Number.isNaN(numberOf(cell)));
  });
  const decimals = Array.from({ length: width }, (_, k) => decimalsOf(rows.map((row) => row[k])));
  const body = el("tbody");
  const heads = Array.from({ length: width }, (_, k) => {
    const label = text(list(table.header)[k]);
    return el("th", { scope: "col", class: numeric[k] ? "number" : null },
      el("button", { type: "button", title: `Sort by ${label}`, click: () => sortBy(k) }, label || "·"));
  });
  const put = (order) => body.replaceChildren(...order.map((row) => el("tr", {}, ...heads.map((_, k) => {
    const look = typeof row[k] === "string" ? looks.get(row[k]) : null;
    const kind = look ? "agent" : numeric[k] ? "number" : null;
    return el("td", { class: kind }, look && swatch(look), cellText(row[k], decimals[k]));
  }))));
  const state = { column: -1, turn: 0 };
  /* First click: ascending; second: descending; third: original order. */
  function sortBy(k) {
    state.turn = state.column === k ? (state.turn + 1) % 3 : 1;
    state.column = k;
    const sign = state.turn === 2 ? -1 : 1;
    const compare = (p, q) => {
      if (blank(p[k]) || blank(q[k])) return Number(blank(p[k])) - Number(blank(q[k]));
      if (numeric[k]) return sign * (numberOf(p[k]) - numberOf(q[k]));
      return sign * text(p[k]).localeCompare(text(q[k]), "en", { numeric: true });
    };
    put(state.turn ? [...rows].sort(compare) : rows);
    heads.forEach((head, j) => {
      if (j === k && state.turn) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
  }
  put(rows);
  const grid = el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
  return el("section", { class: "table" },
    el("h3", {}, text(table.title)),
    table.note && el("p", { class: "note" }, text(table.note)),
    rows.length
      ? el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": text(table.title) }, grid)
      : el("p", { class: "note" }, "No rows."));
}

function factsOf(facts) {
  if (!list(facts).length) return null;
  const item = ([label, value]) => el("div", {}, el("dt", {}, text(label)), el("dd", {}, cellText(value)));
  return el("dl", { class: "facts" }, ...facts.map(item));
}

function mapsOf(maps) {
  if (!list(maps).length) return null;
  return el("section", { class: "maps-of-experiment" }, el("h3", {}, maps.length > 1 ? "Maps" : "Map"),
    el("div", { class: "maps" }, ...maps.map((map) => el("figure", { class: "map" },
      el("img", { src: map.src, alt: text(map.title) }), el("figcaption", {}, text(map.title))))));
}

function headerOf(report) {
  const meta = [text(report.subtitle), text(report.created)].filter(Boolean);
  return [
    el("h1", {}, text(report.title) || "Report"),
    meta.length && el("p", { class: "meta" }, meta.join(" · ")),
    ...list(report.summary).map((paragraph) => el("p", { class: "lead" }, text(paragraph))),
  ].filter(Boolean);
}

function footerOf(report, looks) {
  const tables = list(report.tables);
  const caveats = list(report.caveats);
  const provenance = list(report.provenance);
  const part = (title, ...content) => el("section", {}, el("h2", {}, title), ...content);
  const remark = (caveat) => el("li", {}, text(caveat));
  const entry = ([label, value]) => [el("dt", {}, text(label)), el("dd", {}, text(value))];
  return [
    tables.length && part("Over all experiments", ...tables.map((table) => tableOf(table, looks))),
    caveats.length && part("Caveats", el("ul", { class: "caveats" }, ...caveats.map(remark))),
    provenance.length && part("Provenance", el("dl", { class: "provenance" }, ...provenance.flatMap(entry))),
  ].filter(Boolean);
}
