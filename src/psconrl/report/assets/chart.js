/* One panel: curves, bands, axes and reference lines, redrawn whenever the view or the width changes. */

const NARROW = 400;
const NARROWEST = 240; // with less room, a chart is drawn at this width and scaled down
const LINE_HEIGHT = 15; // of the notes above a chart
const PAPER_WIDTH = 420; // two charts side by side on a printed page, with readable labels
const EARLY = 0.05; // the first part of the x axis, where intervals may be cut off
const CLIP = 4; // an axis of cumulative losses reaches at most this many times as far as the median curve, as in figures
const SQUEEZE = 6; // a reference line may stretch the axis to this many times the range of the curves

function pointsOf(series) {
  const at = (values, k) => (isNumber(list(values)[k]) ? values[k] : null);
  const end = (mean, distance) => (mean === null || distance === null ? null : mean + distance);
  return list(series.x)
    .map((x, k) => {
      const mean = at(series.mean, k);
      const below = at(series.below, k);
      const above = series.above ? at(series.above, k) : below; // a symmetric interval is stored once
      return { x, mean, low: end(mean, below === null ? null : -below), high: end(mean, above) };
    })
    .filter((point) => isNumber(point.x))
    .sort((p, q) => p.x - q.x);
}

/* Runs of points without a gap. */
function stretches(points, whole) {
  const found = [];
  let open = null;
  for (const point of points) {
    if (!whole(point)) open = null;
    else if (open) open.push(point);
    else found.push((open = [point]));
  }
  return found;
}

const spread = (numbers) =>
  numbers.filter(isNumber).reduce(([a, b], t) => [Math.min(a, t), Math.max(b, t)], [Infinity, -Infinity]);
const pair = ([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`;

class Chart {
  constructor(panel, looks, experiment) {
    this.experiment = experiment;
    this.take(panel, looks);
    this.plot = svg("svg", {
      class: "plot", tabindex: 0, role: "group", "aria-roledescription": "chart",
      "aria-label": `${text(panel.title)}: ${text(panel.y)} against ${text(panel.x)}. Arrow keys read the values.`,
    });
    this.stage = el("div", { class: "stage" }, this.plot);
    this.note = el("p", { class: "note" });
    this.root = el("figure", { class: "panel" },
      el("figcaption", {}, el("h3", {}, text(panel.title)), el("p", { class: "unit" }, text(panel.y))),
      this.stage, this.note, saveButtons(this));
    this.cursor = new Cursor(this);
    new ResizeObserver(() => {
      if (this.stage.clientWidth && this.stage.clientWidth !== this.width) this.draw(this.view);
    }).observe(this.stage);
  }

  /* Set the contents: at first, and again when they grow. */
  take(panel, looks) {
    this.panel = panel;
    this.series = list(panel.series).map((series) => ({
      agent: text(series.agent), runs: series.runs, look: looks.get(text(series.agent)), points: pointsOf(series),
    }));
    this.lines = list(panel.lines).map(([label, value]) => ({ label: text(label), value }))
      .filter((line) => isNumber(line.value));
  }

  draw(view, width = this.stage.clientWidth || PAPER_WIDTH) {
    this.view = view;
    this.width = Math.max(NARROWEST, width);
    this.height = Math.round(Math.min(340, Math.max(250, 0.6 * this.width)));
    this.plot.replaceChildren();
    this.cursor.forget();
    this.remarks = [];
    this.limits = [-Infinity, Infinity];
    const usable = (point) => point.mean !== null && (!view.logX || point.x > 0);
    this.shown = this.series.filter((series) => !view.hidden.has(series.agent))
      .map((series) => ({ ...series, parts: stretches(series.points, usable) }))
      .filter((series) => series.parts.length);
    if (this.shown.length) this.drawAll(usable);
    else this.drawNothing();
    this.plot.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.note.textContent = this.remarks.join(" ");
  }

  drawNothing() {
    const any = this.series.some((series) => series.points.some((point) => point.mean !== null));
    const hidden = this.series.every((series) => this.view.hidden.has(series.agent));
    const why = any && hidden ? "No agent is selected." : any ? "Nothing to draw on these axes." : "No data.";
    this.plot.append(
      svg("rect", { class: "frame", x: 0.5, y: 0.5, width: this.width - 1, height: this.height - 1, rx: 6 }),
      svg("text", { class: "empty", x: this.width / 2, y: this.height / 2 }, why));
  }

  drawAll(usable) {
    const xRange = this.rangeX();
    const { kind, unit, range } = this.rangeY(usable, xRange);
    this.limits = range.map(transform(kind, unit).from);
    const notes = this.notesBeyond();
    this.height += LINE_HEIGHT * notes;
    const bottom = this.height - 40;
    const top = 12 + LINE_HEIGHT * notes;
    this.y = makeScale(kind, unit, range, [bottom, top]);
    const yTicks = this.y.ticks(Math.round((bottom - top) / 48));
    const left = Math.ceil(Math.max(28, ...yTicks.map((tick) => textWidth(tick.label) + 12)));
    const words = this.lines.map((line) => this.wordsOf(line));
    const room = Math.min(this.width < NARROW ? 84 : 150, Math.max(0, ...words.map((word) => textWidth(word))));
    const right = this.width - (words.length ? Math.ceil(room) + 16 : 14);
    this.x = makeScale(this.view.logX ? "log" : "linear", 1, xRange, [left, right]);
    this.area = { left, right, top, bottom };
    this.drawAxes(yTicks, this.x.ticks(Math.max(2, Math.floor((right - left) / 56))));
    const inner = this.window();
    if (this.view.bands) this.drawBands(inner, kind);
    this.plot.append(inner);
    this.drawLines(room);
    const curves = this.window();
    for (const series of this.shown) this.drawCurve(series, curves);
    this.plot.append(curves);
    this.markBeyond();
    this.plot.append(svg("rect", { class: "sensor", x: left, y: 0, width: right - left, height: bottom + 12 }));
  }

  rangeX() {
    const kind = this.view.logX ? "log" : "linear";
    const change = transform(kind, 1);
    const xs = this.shown.flatMap((series) => series.parts.flat()).map((point) => change.to(point.x));
    if (this.view.logX && this.shown.some((series) => series.points.some((point) => point.x <= 0))) {
      this.remarks.push(`Log x: points at ${text(this.panel.x) || "x"} ≤ 0 are omitted.`);
    }
    const [a, b] = spread(xs);
    return a === b || kind === "linear" ? widen([a, b], kind, 0, 0.2) : [a, b];
  }

  rangeY(usable, xRange) {
    const values = this.shown.flatMap((series) => series.parts.flat()).map((point) => point.mean);
    const least = values.reduce((m, v) => Math.min(m, v));
    const size = values.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
    const kind = !this.view.logY || size === 0 ? "linear" : least > 0 ? "log" : "symlog";
    const dips = (series) => this.view.bands && series.points.some((point) => point.low !== null && point.low <= 0);
    const unit = size ? 10 ** (Math.floor(Math.log10(size)) - 2) : 1;
    if (kind === "symlog") {
      this.remarks.push(`Log y with values ≤ 0: the axis is about linear within ±${pretty(unit)}, logarithmic beyond.`);
    } else if (kind === "log" && (this.lines.some((line) => line.value <= 0) || this.shown.some(dips))) {
      this.remarks.push("Log y: interval ends and reference lines ≤ 0 are off the axis.");
    }
    const { to } = transform(kind, unit);
    const [floor, ceiling] = this.bounds(kind);
    const clipped = (value) => to(Math.max(floor, Math.min(ceiling, value)));
    const [a, b] = spread(values.map(clipped));
    // Early, very wide intervals must not flatten the curves: they are ignored, and bands at most triple the range.
    const early = xRange[0] + EARLY * (xRange[1] - xRange[0]);
    const xTo = transform(this.view.logX ? "log" : "linear", 1).to;
    const late = (point) => this.view.bands && xTo(point.x) >= early;
    const banded = this.shown.flatMap((series) => series.parts.flat()).filter(late);
    const room = b > a ? b - a : Infinity;
    const ends = banded.flatMap((p) => [p.low, p.high]).filter((end) => isNumber(end) && end >= floor && end <= ceiling)
      .map(to).filter(isNumber);
    let range = spread([a, b, ...ends.map((t) => Math.max(a - room, Math.min(b + room, t)))]);
    const [every, last] = spread(this.series.flatMap((s) => s.points.filter(usable)).map((p) => clipped(p.mean)));
    const reach = last > every ? SQUEEZE * (last - every) : Infinity;
    for (const t of this.lines.map((line) => to(line.value)).filter(isNumber)) {
      if (Math.max(b, t) - Math.min(a, t) <= reach) range = spread([...range, t]);
    }
    return { kind, unit, range: widen(range, kind, 0.05, 0.35) };
  }

  /* The least and the largest value that the axis may have to show. */
  bounds(kind) {
    if (list(this.panel.range).length) return this.panel.range;
    const most = kind === "linear" && this.panel.clip ? this.reach() : Infinity;
    return [-most, most];
  }

  /* How far from zero the axis may go: CLIP times as far as the median curve (the smaller of two in the middle). */
  reach() {
    const size = (series) => Math.max(...series.parts.flat().map((point) => Math.abs(point.mean)));
    const sizes = this.shown.map(size).sort((p, q) => p - q);
    return CLIP * sizes[Math.floor((sizes.length - 1) / 2)] || Infinity;
  }

  /* Write above the axes where curves that are cut off end, and their extreme if they come back; return the lines. */
  notesBeyond() {
    const [low, high] = this.limits;
    const [over, under] = [[], []];
    for (const { agent, parts } of this.shown) {
      const means = parts.flat().map((point) => point.mean);
      const end = means[means.length - 1];
      const [least, most] = spread(means);
      const back = end < low || end > high ? null : most > high ? most : least < low ? least : undefined;
      if (back === undefined) continue;
      const words = `${agent} ends at ${pretty(end, 3)}${back === null ? "" : `, from ${pretty(back, 3)}`}`;
      if ((back ?? end) > high) over.push(`↑ ${words}`);
      else under.push(`↓ ${words}`);
    }
    let [x, lines] = [0, 0];
    for (const note of [...over, ...under].map((words) => shorten(words, this.width))) {
      const wide = textWidth(note);
      if (!lines || x + wide > this.width) [x, lines] = [0, lines + 1];
      this.plot.append(svg("text", { class: "beyond", x, y: LINE_HEIGHT * lines - 4 }, note));
      x += wide + 18;
    }
    return lines;
  }

  /* Mark every excursion beyond the axis with a triangle at its edge, below or above the extreme value. */
  markBeyond() {
    const [low, high] = this.limits;
    for (const { agent, look, parts } of this.shown) {
      for (const [sign, limit, edge] of [[1, high, this.area.top], [-1, -low, this.area.bottom]]) {
        for (const points of parts.flatMap((part) => stretches(part, (point) => sign * point.mean > limit))) {
          const far = points.reduce((p, q) => (sign * q.mean > sign * p.mean ? q : p));
          this.plot.append(svg("path", { class: "excursion painted", ...painted(look), "data-agent": agent,
            d: `M${pair([this.x.place(far.x), edge])}l5,${8 * sign}h-10z` }));
        }
      }
    }
  }

  drawAxes(yTicks, xTicks) {
    const { left, right, top, bottom } = this.area;
    const grid = svg("g", { class: "grid" });
    const labels = svg("g", { class: "ticks" });
    for (const { value, label } of yTicks) {
      const y = this.y.place(value).toFixed(1);
      grid.append(svg("line", { x1: left, x2: right, y1: y, y2: y, class: value === 0 ? "zero" : null }));
      labels.append(svg("text", { class: "tick-y", x: left - 7, y, dy: "0.35em" }, label));
    }
    for (const { value, label } of xTicks) {
      const x = this.x.place(value).toFixed(1);
      grid.append(svg("line", { x1: x, x2: x, y1: top, y2: bottom }));
      labels.append(svg("text", { class: "tick-x", x, y: bottom + 16 }, label));
    }
    labels.append(svg("text", { class: "axis", x: (left + right) / 2, y: this.height - 5 }, text(this.panel.x)));
    this.plot.append(grid, labels, svg("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
  }

  /* A nested svg that clips what leaves the axes, except for half a line width. */
  window() {
    const { left, right, top, bottom } = this.area;
    const place = { x: left, y: top - 1, width: right - left + 1, height: bottom - top + 2 };
    return svg("svg", { ...place, viewBox: `${place.x} ${place.y} ${place.width} ${place.height}` });
  }

  drawBands(clip, kind) {
    const [floor] = this.limits;
    clip.style.setProperty("--fade", 1 / Math.sqrt(this.shown.length)); // keeps many overlapping bands light
    const height = (value) => this.y.place(kind === "log" ? Math.max(value, floor) : value);
    for (const series of this.shown) {
      const known = (point) => point.low !== null && point.high !== null;
      for (const part of series.parts.flatMap((points) => stretches(points, known))) {
        const up = part.map((p) => pair([this.x.place(p.x), height(p.high)]));
        const down = part.map((p) => pair([this.x.place(p.x), height(p.low)])).reverse();
        const lone = part.length === 1; // a bar, since a band of one point has no width
        clip.append(svg("path", {
          class: `${lone ? "bar-of-one" : "band"} painted`, ...painted(series.look), "data-agent": series.agent,
          d: `M${[...up, ...down].join("L")}${lone ? "" : "Z"}`,
        }));
      }
    }
  }

  drawLines(room) {
    const { right, top, bottom } = this.area;
    const marks = this.lines.map((line) => ({ ...line, at: this.y.place(line.value) }))
      .filter((mark) => isNumber(mark.at))
      .sort((m, n) => m.at - n.at);
    let free = top;
    for (const mark of marks) free = (mark.to = Math.max(Math.min(mark.at, bottom), free)) + 15;
    for (let k = marks.length - 1, most = bottom; k >= 0; k--) most = (marks[k].to = Math.min(marks[k].to, most)) - 15;
    for (const mark of marks) {
      const outside = mark.at < top - 1 ? "↑ " : mark.at > bottom + 1 ? "↓ " : "";
      const level = mark.at.toFixed(1);
      if (!outside) {
        this.plot.append(
          svg("path", { class: "reference", d: `M${this.area.left},${level}H${right}` }),
          svg("path", { class: "leader", d: `M${right},${level}L${right + 8},${mark.to.toFixed(1)}` }));
      }
      this.plot.append(svg("text", { class: "reference-label", x: right + 11, y: mark.to, dy: "0.35em" },
        svg("title", {}, `${mark.label} ${pretty(mark.value)}`), shorten(outside + this.wordsOf(mark), room + 2)));
    }
  }

  /* The label of a reference line; in a narrow chart only the tooltip has the number. */
  wordsOf(line) {
    return this.width < NARROW ? line.label : `${line.label} ${pretty(line.value, 4)}`;
  }

  drawCurve(series, curves) {
    for (const points of series.parts) {
      const places = points.map((p) => [this.x.place(p.x), this.y.place(p.mean)]);
      const look = painted(series.look);
      const dash = series.look.dash || null;
      const path = { class: "line painted", ...look, "stroke-dasharray": dash, d: `M${places.map(pair).join("L")}` };
      const dot = { class: "dot painted", ...look, cx: places[0][0], cy: places[0][1], r: 4 };
      const mark = points.length > 1 ? svg("path", path) : svg("circle", dot);
      mark.setAttribute("data-agent", series.agent);
      curves.append(mark);
    }
  }
}
