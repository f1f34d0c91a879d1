// The learning curve, as an SVG: means of evaluations with their standard deviation, and returns of
// training episodes.
import { svgElement } from "./picture.js";

const WIDTH = 480, HEIGHT = 260, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 34;
const MAX_POINTS = 600; // of a kind; then every second one goes
const REST_MS = 500; // after a drawing, until episodes are drawn

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9); i++) found.push(i * step || 0); // not -0
  return found;
}

/** Halves the points where there are too many; the last one stays. */
const thinned = (points) =>
  points.length > MAX_POINTS ? points.filter((_, index) => (points.length - 1 - index) % 2 === 0) : points;

/** Returns one element for all points: strokes of no length, with round ends. */
const dots = (look, points) =>
  svgElement("path", { class: look, d: points.map(([x, y]) => `M${x.toFixed(1)},${y.toFixed(1)}h.01`).join("") });

const compact = (value) => value.toLocaleString("en", { notation: value < 1e6 ? "standard" : "compact" });

export class Curve {
  constructor(svg) {
    this.svg = svg;
    this.timer = 0; // of a drawing to come
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.clear(1);
  }

  clear(steps) {
    this.steps = steps;
    this.evaluations = [];
    this.episodes = [];
    this.draw();
  }

  addEpisode(step, value) {
    if (!Number.isFinite(value)) return;
    this.episodes.push([step, value]);
    this.episodes = thinned(this.episodes);
    this.timer ||= setTimeout(() => this.draw(), REST_MS);
  }

  addEvaluation(step, mean, std) {
    this.evaluations.push([step, mean, std]);
    this.evaluations = thinned(this.evaluations);
    this.draw();
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = 0;
    const values = [
      ...this.evaluations.flatMap(([, mean, std]) => [mean - std, mean + std]),
      ...this.episodes.map(([, value]) => value),
    ].filter(Number.isFinite);
    let low = Math.min(...values), high = Math.max(...values);
    if (!values.length) [low, high] = [0, 1];
    if (high - low < 1e-6) [low, high] = [low - 1, high + 1];
    const steps = Math.max(this.steps, ...this.evaluations.map(([step]) => step));
    const x = (step) => LEFT + (step / steps) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const parts = [svgElement("path", {
      class: "axis", d: `M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`,
    })];
    const label = (text, attributes) => {
      const element = svgElement("text", attributes);
      element.textContent = text;
      parts.push(element);
    };
    if (values.length) {
      for (const tick of ticks(low, high, 5)) {
        parts.push(svgElement("path", { class: "axis", d: `M${LEFT - 4},${y(tick)}h4` }));
        label(tick.toLocaleString("en"), { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" });
      }
    }
    for (const tick of ticks(0, steps, 4)) {
      parts.push(svgElement("path", { class: "axis", d: `M${x(tick)},${HEIGHT - BOTTOM}v4` }));
      const anchor = tick === 0 ? "start" : x(tick) > WIDTH - 40 ? "end" : "middle";
      const text = tick === 0 ? "0 steps" : compact(tick);
      label(text, { x: x(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": anchor });
    }
    parts.push(dots("episodes", this.episodes.map(([step, value]) => [x(step), y(value)])));
    const known = this.evaluations.filter(([, mean]) => Number.isFinite(mean));
    if (known.length > 1) {
      const upper = known.map(([step, mean, std]) => `${x(step)},${y(mean + std)}`);
      const lower = known.map(([step, mean, std]) => `${x(step)},${y(mean - std)}`).reverse();
      parts.push(svgElement("polygon", { class: "band", points: [...upper, ...lower].join(" ") }));
      const line = known.map(([step, mean]) => `${x(step)},${y(mean)}`).join(" ");
      parts.push(svgElement("polyline", { class: "mean", points: line }));
    }
    parts.push(dots("dot", known.map(([step, mean]) => [x(step), y(mean)])));
    this.svg.replaceChildren(...parts);
    const last = known.at(-1);
    const text = last ? `mean return ${last[1].toFixed(1)} at step ${last[0]}` : "no evaluation yet";
    this.svg.setAttribute("aria-label", `Learning curve: ${text}`);
  }
}
