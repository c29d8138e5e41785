/* The policy: the actions in the states visited most, and a strip with their history. */

/* Attributes of an element in the colour of an action; rare actions are grey. */
const paint = (colour) => (colour ? { class: "painted", ...painted({ colour }) } : { class: "others" });

/* Consecutive moments with the same most probable action. */
function runsOf(moments) {
  const runs = [];
  moments.forEach((moment, k) => {
    const [action, share] = list(moment);
    const last = runs[runs.length - 1];
    if (last && last.action === action && last.share === share) last.to = k + 1;
    else runs.push({ action, share, from: k, to: k + 1 });
  });
  return runs.filter((run) => run.action !== undefined);
}

function stripOf(row, policy, colours) {
  const n = row.moments.length;
  const round = (k) => pretty(Math.round(policy.start + ((policy.last - policy.start) * k) / n), 9);
  const percent = (share) => (share < 0.9995 ? ` ${pretty(100 * share, 3)}%` : "");
  return svg("svg", { class: "strip", viewBox: `0 0 ${n} 1`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Actions in state ${row.state} over time` },
    ...runsOf(row.moments).map((run) => svg("rect", {
      ...paint(colours.get(run.action)), x: run.from, y: 0, width: run.to - run.from, height: 1,
      "fill-opacity": (0.3 + 0.7 * run.share).toFixed(2),
    }, svg("title", {}, `rounds ${round(run.from)} to ${round(run.to)}: ${run.action}${percent(run.share)}`))));
}

function policyOf(policy) {
  if (!policy) return null;
  const colours = new Map(policy.actions);
  const key = (colour, words) => el("li", {}, el("i", paint(colour)), words);
  const coloured = policy.actions.filter(([, colour]) => colour);
  const others = policy.actions.length - coloured.length;
  const head = (...words) => el("th", { scope: "col" }, ...words);
  const rows = policy.rows.map((row) => el("tr", {},
    el("td", {}, row.state), el("td", { class: "number" }, `${pretty(100 * row.share, 3)}%`), el("td", {}, row.words),
    el("td", { class: "history" }, stripOf(row, policy, colours))));
  const ends = el("span", { class: "ends" },
    el("span", {}, `round ${pretty(policy.start, 9)}`), el("span", {}, pretty(policy.last, 9)));
  return el("section", { class: "policy" },
    el("h3", {}, "Policy"),
    el("p", { class: "note" }, "The states visited most, their actions now, and the most probable action at " +
      `${policy.rows[0].moments.length} moments of the run: paler if randomised, empty if the state was not among them.`),
    el("ul", { class: "keys", "aria-label": "Actions" },
      ...coloured.map(([action, colour]) => key(colour, action)), others > 0 && key("", `${others} more`)),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Policy" }, el("table", {},
      el("thead", {}, el("tr", {}, head("state"), el("th", { scope: "col", class: "number" }, "of the rounds"),
        head("action now"), head(ends))),
      el("tbody", {}, ...rows))));
}
