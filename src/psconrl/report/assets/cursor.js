/* The cursor of a chart: a vertical line that snaps to the nearest checkpoint, and a tooltip with the values there. */

class Cursor {
  constructor(chart) {
    this.chart = chart;
    this.peers = []; // the other charts of the experiment, which show the same checkpoint without the tooltip
    this.mark = svg("g", { class: "cursor" });
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    chart.stage.append(this.tip);
    chart.plot.addEventListener("pointermove", (event) => this.follow(event));
    chart.plot.addEventListener("pointerdown", (event) => this.follow(event));
    chart.plot.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.leave());
    chart.plot.addEventListener("blur", () => this.leave());
    chart.plot.addEventListener("keydown", (event) => this.step(event));
  }

  /* Called by a redraw, which invalidates positions and checkpoints. */
  forget() {
    this.stops = null;
    this.hide();
  }

  checkpoints() {
    if (!this.chart.shown.length) return [];
    const xs = new Set(this.chart.shown.flatMap((series) => series.parts.flat()).map((point) => point.x));
    return (this.stops ??= [...xs].sort((a, b) => a - b));
  }

  follow(event) {
    const stops = this.checkpoints();
    if (!stops.length) return;
    const box = this.chart.plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) * this.chart.width) / box.width;
    const far = (stop) => Math.abs(this.chart.x.place(stop) - x);
    this.read(stops.reduce((best, stop) => (far(stop) < far(best) ? stop : best)));
  }

  step(event) {
    const stops = this.checkpoints();
    if (event.key === "Escape") this.leave();
    if (!stops.length || !["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const stride = event.shiftKey ? 10 : 1;
    const now = stops.indexOf(this.at);
    const last = stops.length - 1;
    const next = { ArrowLeft: now < 0 ? last : now - stride, ArrowRight: now + stride, Home: 0, End: last }[event.key];
    this.read(stops[Math.max(0, Math.min(last, next))]);
  }

  read(x) {
    this.show(x, true);
    for (const peer of this.peers) peer.show(x, false);
  }

  leave() {
    this.hide();
    for (const peer of this.peers) peer.hide();
  }

  hide() {
    this.at = undefined;
    this.mark.remove();
    this.tip.hidden = true;
  }

  show(x, withTip) {
    const { chart } = this;
    if (!chart.shown.length || !this.checkpoints().includes(x)) return this.hide();
    this.at = x;
    const place = chart.x.place(x);
    const rows = chart.shown
      .map((series) => ({ ...series, point: series.parts.flat().find((point) => point.x === x) }))
      .filter((row) => row.point)
      .sort((p, q) => q.point.mean - p.point.mean);
    const inside = ({ point }) => point.mean >= chart.limits[0] && point.mean <= chart.limits[1];
    const dot = ({ look, point }) =>
      svg("circle", { class: "dot painted", ...painted(look), cx: place, cy: chart.y.place(point.mean), r: 3.5 });
    const { top, bottom } = chart.area;
    this.mark.replaceChildren(svg("line", { x1: place, x2: place, y1: top, y2: bottom }), ...rows.filter(inside).map(dot));
    chart.plot.append(this.mark);
    this.tip.hidden = !withTip;
    if (withTip) this.write(x, rows, place);
  }

  write(x, rows, place) {
    const { chart } = this;
    const decimals = decimalsOf(rows.map((row) => row.point.mean));
    const show = (value) => cellText(value, decimals);
    const ends = ({ low, high }) => (low === null || high === null ? "" : `[${show(low)}, ${show(high)}]`);
    const counts = new Set(rows.map((row) => row.runs).filter(isNumber));
    const [runs] = counts;
    const shared = counts.size === 1 && rows.every((row) => row.runs === runs);
    const number = (row) => (isNumber(row.runs) ? `n = ${row.runs}` : "");
    const body = rows.map((row) => el("tr", {},
      el("th", { scope: "row" }, swatch(row.look), el("span", {}, row.agent)),
      el("td", { class: "value" }, show(row.point.mean)),
      el("td", {}, ends(row.point)),
      shared ? null : el("td", {}, number(row))));
    const lines = chart.lines.map((line) => `${line.label} ${pretty(line.value, 4)}`).join(" · ");
    this.tip.replaceChildren(
      el("p", { class: "where" }, `${text(chart.panel.x)} ${pretty(x, 9)}`,
        shared && el("span", {}, runs === 1 ? "1 run each" : `${runs} runs each`)),
      el("table", {}, el("tbody", {}, ...body)),
      lines && el("p", { class: "lines" }, lines));
    const narrow = chart.width < 480;
    this.tip.classList.toggle("below", narrow);
    this.tip.style.left = "";
    this.tip.style.right = "";
    if (narrow) return;
    // Right of the line, or left if there is no room; never past the edge of the page.
    const page = document.documentElement.clientWidth;
    const start = chart.stage.getBoundingClientRect().left;
    const width = this.tip.offsetWidth;
    const wanted = place + 16 + width + start < page - 8 ? place + 16 : place - 16 - width;
    this.tip.style.left = `${Math.max(8 - start, Math.min(wanted, page - 8 - start - width))}px`;
  }
}
