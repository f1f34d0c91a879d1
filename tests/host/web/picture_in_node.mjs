// node picture_in_node.mjs PICTURE.JS FILE: draws {picture, rows} of the JSON file, rows of values by the
// channels' names, and prints JSON: for each row the elements, {kind, ...attributes}.
import { readFileSync } from "node:fs";

const [, , script, file] = process.argv;
const element = (kind) => ({
  kind,
  attributes: {},
  children: [],
  setAttribute(key, value) {
    this.attributes[key] = String(value);
  },
  append(child) {
    this.children.push(child);
  },
  replaceChildren() {
    this.children = [];
  },
  toggleAttribute() {},
});
globalThis.document = { createElementNS: (_, kind) => element(kind) };
const { Picture } = await import(script);
const { picture, rows } = JSON.parse(readFileSync(file));
const svg = element("svg");
const drawn = new Picture(svg, picture);
const found = rows.map((row) => {
  drawn.draw(new Map(Object.entries(row).map(([name, value]) => [name, value ?? NaN])));
  return svg.children.map(({ kind, attributes }) => ({ kind, ...attributes }));
});
console.log(JSON.stringify({ viewBox: svg.attributes.viewBox, found }));
