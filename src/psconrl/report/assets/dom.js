/* Building elements. Text always becomes a text node, so no name can turn into markup. */

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const list = (value) => (Array.isArray(value) ? value : []);
const text = (value) => (value === null || value === undefined ? "" : String(value));

/* Nine colours and eight dash patterns: 72 agents before a pair repeats. */
const DASHES = ["", "9 4", "2 3", "9 3 2 3", "16 4", "5 3", "9 3 2 3 2 3", "16 3 5 3"];
const COLOURS = 9;

function lookOf(index) {
  return { colour: `c${index % COLOURS}`, dash: DASHES[index % DASHES.length] };
}

function swatch(look) {
  return svg("svg", { class: `swatch ${look.colour}`, width: 36, height: 10, "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 36, y1: 5, y2: 5, class: "line", "stroke-dasharray": look.dash || null }));
}

const ruler = document.createElement("canvas").getContext("2d");

function textWidth(string, font = "12px system-ui, sans-serif") {
  ruler.font = font;
  return ruler.measureText(string).width;
}

function shorten(string, room) {
  if (textWidth(string) <= room) return string;
  const letters = Array.from(string);
  while (letters.length > 1 && textWidth(letters.join("") + "…") > room) letters.pop();
  return letters.join("") + "…";
}
