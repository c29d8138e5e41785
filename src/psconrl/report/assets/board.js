/* The board of submissions: one kind of costs, one charge, all environments or one; sorted by any column. */

const report = JSON.parse(document.getElementById("report").textContent);
const kinds = Object.keys(report.boards[0] || {});
const chosen = { kind: kinds[0], charge: 0, environment: "", agent: "" };
const order = { standings: { key: "position", down: false }, matrix: { key: "position", down: false } };

const COLUMNS = [
  ["loss", "loss", "Score in % of that of uniform play"],
  ["tail", "90%", "Loss of the 90th percentile of runs"],
  ["worst_run", "worst run", "Loss of the worst run"],
  ["overspent", "overspent", "Charge for positive violations at their prices, in % of the score of uniform play"],
  ["worst", "at worst", "Charge for the largest running excess at its price, in % of the score of uniform play"],
  ["strong", "strong", "Charge for strong violations at their prices, in % of the score of uniform play"],
  ["growth", "growth", "Exponent of the score between T/16 and T"],
  ["seconds", "s", "Seconds per run"],
];

function shown(number, digits = 2) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  if (size !== 0 && size < 1e-4) return number.toExponential(1);
  const decimals = size === 0 ? 0 : Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 6);
  return Number(number.toFixed(decimals)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

const mean = (value) => (Array.isArray(value) ? value[0] : value);

function estimate(value) {
  const cell = [shown(value[0], 3)];
  if (value[1] !== null) {
    cell.push(" ", el("span", { class: "interval" }, `[${shown(value[1], 3)}, ${shown(value[2], 3)}]`));
  }
  return cell;
}

/* Rows without a number come last, in both directions. */
function sorted(rows, { key, down }) {
  const value = (row) => (key in row.keys ? mean(row.keys[key]) : null);
  const missing = (x) => x === null || x === undefined;
  return [...rows].sort((one, two) => {
    const [a, b] = [value(one), value(two)];
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const before = typeof a === "string" ? a.localeCompare(b) : a - b;
    return down ? -before : before;
  });
}

function sortable(which, key, name, hint, redraw) {
  const { key: current, down } = order[which];
  const now = current === key ? (down ? "descending" : "ascending") : null;
  const press = () => {
    order[which] = { key, down: current === key && !down };
    redraw();
  };
  const arrow = now ? (down ? " ↓" : " ↑") : "";
  return el("th", { scope: "col", "aria-sort": now },
    el("button", { type: "button", title: hint, "data-key": key, click: press }, name + arrow));
}

const settings = Object.fromEntries(report.submissions.map((each) => [each.agent, each.setting]));
/* The user's submissions among the built-in agents. */
const own = new Set(report.own);
const rowClass = (agent) => (own.has(agent) ? "own" : null);
const matches = (agent) => agent.toLowerCase().includes(chosen.agent.trim().toLowerCase());
const board = () => report.boards[chosen.charge][chosen.kind];
/* The part that is chosen in place of an environment. */
const PART = "part: ";
const part = () => board().parts.find(({ title }) => chosen.environment === PART + title);

function standings() {
  const of = part();
  const environment = of ? "" : chosen.environment;
  const places = environment ? board().places[environment] : null;
  const first = places
    ? ["score", "score", "Regret plus the charge for positive violations, with a 95% interval"]
    : ["position", "rank", "Rank by mean score, averaged over environments, with a 95% interval over runs"];
  const heads = places ? [first] : [first, ["environments", "environments", "Environments that the agent plays"]];
  if (places && order.standings.key === "position") order.standings = { key: "score", down: false };
  if (!places && order.standings.key === "score") order.standings = { key: "position", down: false };
  const all = (of || board()).standings;
  const rows = all.filter((row) => matches(row.agent) && (!places || places[row.agent])).map((row) => {
    const numbers = places ? places[row.agent] : row;
    const start = places
      ? [el("td", { class: numbers.not_worse ? "best" : null }, ...estimate(numbers.score))]
      : [el("td", {}, ...estimate(row.rank)), el("td", {}, text(row.environments))];
    const cells = COLUMNS.map(([key]) => el("td", {}, shown(numbers[key])));
    return {
      keys: { ...numbers, agent: row.agent, position: mean(row.rank) },
      node: el("tr", { class: rowClass(row.agent) }, el("td", { title: settings[row.agent] }, row.agent), ...start, ...cells),
    };
  });
  const columns = [["agent", "agent", "Name of the agent"], ...heads, ...COLUMNS];
  return table("standings", columns, rows);
}

function matrix() {
  const { places } = board();
  const of = part();
  const environments = board().environments.filter(({ name }) => !of || of.environments.includes(name));
  const rows = (of || board()).standings.filter((row) => matches(row.agent)).map((row) => {
    const own = environments.map(({ name }) => places[name][row.agent]);
    const keys = Object.fromEntries(environments.map(({ name }, k) => [name, own[k] ? own[k].loss : null]));
    const cells = own.map((place) => el("td", { class: place && place.not_worse ? "best" : null },
      place ? shown(place.loss) : "–"));
    return {
      keys: { ...keys, agent: row.agent, position: mean(row.rank) },
      node: el("tr", { class: rowClass(row.agent) }, el("td", {}, row.agent), ...cells),
    };
  });
  const columns = environments.map(({ name, short }) => [name, short, `Loss in ${name}`]);
  return table("matrix", [["agent", "agent", "Name of the agent"], ...columns], rows);
}

function table(which, columns, rows) {
  const heads = columns.map(([key, name, hint]) => sortable(which, key, name, hint, draw));
  const body = sorted(rows, order[which]).map((row) => row.node);
  return el("table", { class: which },
    el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...body));
}

function choice(name, values, current, change) {
  const options = values.map(([value, label]) => el("option", { value, selected: value === current }, label));
  return el("label", {}, name, el("select", { name, change: (event) => change(event.target.value) }, ...options));
}

function controls() {
  const parts = board().parts.map(({ title }) => [PART + title, `${title}, averaged`]);
  const environments = [...parts, ...board().environments.map(({ name, short }) => [name, short])];
  return [
    choice("costs", kinds.map((kind) => [kind, kind]), chosen.kind, (kind) => {
      Object.assign(chosen, { kind, environment: "" });
      order.matrix = { key: "position", down: false };
      draw();
    }),
    choice("environment", [["", "all, averaged"], ...environments], chosen.environment, (environment) => {
      chosen.environment = environment;
      draw();
    }),
    choice("charge", report.charges.map(({ factor, floor }, k) => [String(k), `price factor ${factor}, floor ${floor}`]),
      String(chosen.charge), (charge) => {
        chosen.charge = Number(charge);
        draw();
      }),
  ];
}

function origin(each) {
  const { tuning } = each;
  const tried = tuning
    ? tuning.values.map((value, k) => `${value}: ${shown(tuning.losses[k])}`).join(", ")
    : "";
  const lines = [
    `${each.name}; ${each.setting}`,
    tuning ? `Losses on the development environments at each value of ${tuning.option}: ${tried}` : null,
    `Made with ${each.versions}; ${each.platform}`,
    each.code ? `Code: SHA-256 ${each.code}` : null,
    each.left_out.length ? `Environments that it refuses: ${each.left_out.join("; ")}` : null,
  ];
  return el("details", { class: "origin" }, el("summary", {}, each.agent),
    ...lines.filter(Boolean).map((line) => el("p", {}, line)),
    ...each.files.flatMap((file) => [el("p", {}, file.path), el("pre", {}, file.text)]));
}

const places = {
  choices: el("span", { style: "display: contents" }),
  caption: el("p", { class: "board-note" }),
  standings: el("div", { class: "board" }),
  matrix: el("div", { class: "board matrix" }),
};

function draw() {
  const { factor, floor } = report.charges[chosen.charge];
  places.choices.replaceChildren(...controls());
  places.caption.textContent = "Score of a run: regret plus positive violations, each at " + factor + " times its "
    + "shadow price, but at least at " + floor + " times its range price. Loss, 90%, worst run, overspent, at worst and strong are in % of the score of uniform play; growth is "
    + "the exponent of the score between T/16 and T; s is seconds per run. Lower is better. Click a heading to sort."
    + board().parts.map((each) => ` ${each.title}: ${each.description}`).join("");
  places.standings.replaceChildren(standings());
  places.matrix.replaceChildren(matrix());
}

const search = el("input", {
  type: "search", name: "agent", placeholder: "part of a name",
  input: (event) => {
    chosen.agent = event.target.value;
    draw();
  },
});
document.getElementById("head").append(el("h1", {}, report.title),
  el("p", { class: "meta" }, `Submissions: ${own.size || report.submissions.length}, and uniform play`
    + (report.quick ? "; short runs (--quick), which do not count" : "")),
  ...(report.remark ? [el("p", { class: "remark" }, report.remark + (own.size ? " Submitted rows are shaded." : ""))] : []));
document.getElementById("main").append(
  el("details", { class: "robust" },
    el("summary", {}, "How the ranking depends on the charge for violations"),
    ...report.changes.map((line) => el("p", {}, line))),
  el("div", { class: "choices" }, places.choices, el("label", {}, "agent", search)),
  el("h2", { class: "board-heading" }, "Standings"), places.caption, places.standings,
  el("h2", { class: "board-heading" }, "Loss by environment"),
  el("p", { class: "board-note" }, "Bold: not significantly worse than the agent with the least mean score."),
  places.matrix,
  el("h2", { class: "board-heading" }, "Submissions"), ...report.submissions.map(origin));
draw();
