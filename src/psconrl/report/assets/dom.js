/* Creation of elements. Text always becomes a text node, so no name can turn into markup. */

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

/* Attributes of an element in an agent's colour; the style sheet adapts it to the background. */
const painted = (look) => ({ style: `--own: ${look.colour}`, "data-black": look.colour === "#000000" });

function swatch(look) {
  return svg("svg", { class: "swatch painted", ...painted(look), width: 36, height: 10, "aria-hidden": "true" },
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
