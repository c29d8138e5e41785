/* Scales, round ticks and number formats. */

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (string) => string.replace(/-/g, "−");

/* A value for prose: a few digits, with separators of thousands. */
function pretty(value, digits = 5) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return minus(Number(value.toPrecision(digits)).toExponential());
  const precision = size >= 10 ** digits ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits };
  return minus(value.toLocaleString("en-US", precision));
}

/* A tick's label: 2,000, 20k, 1.5M, 0.25. `step` sets the number of decimals, `most` the unit of the whole axis. */
function tickLabel(value, step, most) {
  if (value === 0) return "0";
  if (most >= 1e12 || most < 1e-4) return minus(Number(value.toPrecision(3)).toExponential());
  const [unit, letter] = most >= 1e9 ? [1e9, "G"] : most >= 1e6 ? [1e6, "M"] : most >= 1e4 ? [1e3, "k"] : [1, ""];
  const uneven = (number) => Math.abs(number - Math.round(number)) > 1e-6;
  let decimals = 0;
  while (decimals < 8 && uneven((step / unit) * 10 ** decimals)) decimals++;
  const places = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return minus((value / unit).toLocaleString("en-US", places)) + letter;
}

function linearTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const most = Math.max(Math.abs(first), Math.abs(last)) * step;
  const ticks = [];
  for (let k = first; k <= last && ticks.length < 100; k++) {
    const value = Number((k * step).toPrecision(12));
    ticks.push({ value, label: tickLabel(value, step, most) });
  }
  return ticks;
}

const ownLabel = (value) => ({ value, label: tickLabel(value, Math.abs(value), Math.abs(value)) });

function logTicks(low, high, count) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const inside = (value) => value >= low * 0.9999 && value <= high * 1.0001;
  const all = (digits) => {
    const values = [];
    for (let k = first; k <= last; k++) for (const d of digits) values.push(Number(`${d}e${k}`));
    return values.filter(inside);
  };
  const fine = all([1, 2, 5]);
  if (fine.length < 3) return linearTicks(low, high, Math.min(count, 4)).filter((tick) => tick.value > 0);
  const most = 1.5 * count; // labels of round numbers are short
  if (fine.length <= most) return fine.map(ownLabel);
  const decades = all([1]);
  const every = Math.max(1, Math.ceil(decades.length / most));
  return decades.filter((_, k) => k % every === 0).map(ownLabel);
}

function symlogTicks(low, high, unit, place) {
  const decades = Math.ceil(Math.log10(Math.max(-low, high, unit) / unit));
  const values = [0];
  for (let k = decades; k >= 0; k--) {
    const size = Number((unit * 10 ** k).toPrecision(6));
    values.push(size, -size);
  }
  const kept = [];
  for (const value of values) {
    const clear = kept.every((other) => Math.abs(place(other) - place(value)) > 20);
    if (value >= low && value <= high && clear) kept.push(value);
  }
  return kept.sort((a, b) => a - b).map(ownLabel);
}

/* The change of variable of an axis. A "symlog" axis is about linear within ±unit and logarithmic outside. */
function transform(kind, unit) {
  if (kind === "log") return { to: (v) => (v > 0 ? Math.log10(v) : NaN), from: (t) => 10 ** t };
  if (kind === "symlog") {
    return {
      to: (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / unit),
      from: (t) => Math.sign(t) * unit * (10 ** Math.abs(t) - 1),
    };
  }
  return { to: (v) => v, from: (t) => t };
}

/* A scale from the transformed range [a, b] to the pixels [p, q]. */
function makeScale(kind, unit, [a, b], [p, q]) {
  const change = transform(kind, unit);
  const place = (value) => p + ((change.to(value) - a) / (b - a)) * (q - p);
  const [low, high] = [change.from(a), change.from(b)];
  const ticks = (count) => {
    if (kind === "log") return logTicks(low, high, count);
    if (kind === "symlog") return symlogTicks(low, high, unit, place);
    return linearTicks(low, high, count);
  };
  return { place, ticks };
}

/* Pad a range of transformed values; an axis that nearly reaches zero starts there. */
function widen([a, b], kind, share, nearZero) {
  if (a === 0 && b === 0 && kind === "linear") return [0, 1];
  if (a === b) {
    const half = kind === "linear" ? Math.abs(a) * 0.1 || 1 : 0.5;
    return [a - half, b + half];
  }
  const pad = share * (b - a);
  if (kind !== "linear") return [a - pad, b + pad];
  if (a >= 0 && a < nearZero * b) return [0, b + pad];
  if (b <= 0 && b > nearZero * a) return [a - pad, 0];
  return [a - pad, b + pad];
}
