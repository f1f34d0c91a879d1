// Draws an environment's picture (docs/environments.md, "A picture") into an SVG element. Its
// expressions come as trees of known operations: a number, a name, or [operation, ...trees].
const SVG = "http://www.w3.org/2000/svg";
const ELEMENTS = { line: "polyline", area: "polygon", rod: "line", circle: "circle" };
const FARTHEST = 1e4; // pixels; what is farther away, or no number, is drawn there
const WIDTH = 320;
const OPERATIONS = {
  "+": (a, b) => (b === undefined ? a : a + b),
  "-": (a, b) => (b === undefined ? -a : a - b),
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  sin: Math.sin, cos: Math.cos, sqrt: Math.sqrt, abs: Math.abs, atan2: Math.atan2,
  min: Math.min, max: Math.max,
};

function computed(tree, values) {
  if (typeof tree === "number") return tree;
  if (typeof tree === "string") return values.get(tree);
  return OPERATIONS[tree[0]](...tree.slice(1).map((each) => computed(each, values)));
}

export function svgElement(name, attributes = {}) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export class Picture {
  /** `picture` is {view: [left, bottom, right, top], shapes: [{kind, look, numbers}]} or null. */
  constructor(svg, picture) {
    this.picture = picture;
    svg.replaceChildren();
    svg.toggleAttribute("hidden", !picture);
    if (!picture) return;
    const [left, bottom, right, top] = picture.view;
    this.scale = WIDTH / (right - left);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${(top - bottom) * this.scale}`);
    this.elements = picture.shapes.map(({ kind, look }) => {
      if (!(kind in ELEMENTS)) return null; // a name for what follows
      const element = svgElement(ELEMENTS[kind], { class: look });
      svg.append(element);
      return element;
    });
  }

  /** Draws the picture for the channels' values, by their names. */
  draw(values) {
    if (!this.picture) return;
    this.picture.shapes.forEach(({ kind, look, numbers }, index) => {
      const found = numbers.map((tree) => computed(tree, values));
      if (kind === "let") values.set(look, found[0]);
      else this.#move(this.elements[index], kind, found);
    });
  }

  #move(element, kind, n) {
    const attributes = {};
    if (kind === "circle") {
      Object.assign(attributes, { cx: this.#x(n[0]), cy: this.#y(n[1]), r: this.#size(n[2]) });
    } else if (kind === "rod") {
      Object.assign(attributes, {
        x1: this.#x(n[0]), y1: this.#y(n[1]), x2: this.#x(n[2]), y2: this.#y(n[3]),
        "stroke-width": this.#size(n[4]),
      });
    } else {
      const points = [];
      for (let i = 0; i < n.length; i += 2) points.push(`${this.#x(n[i])},${this.#y(n[i + 1])}`);
      Object.assign(attributes, { points: points.join(" "), "stroke-width": 2 });
    }
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  }

  #pixels(value) {
    const known = Number.isNaN(value) ? FARTHEST : Math.max(-FARTHEST, Math.min(FARTHEST, value));
    return Math.round(known * 10) / 10;
  }
  #x(value) {
    return this.#pixels((value - this.picture.view[0]) * this.scale);
  }
  #y(value) {
    return this.#pixels((this.picture.view[3] - value) * this.scale);
  }
  #size(value) {
    return this.#pixels(Math.abs(value) * this.scale);
  }
}
