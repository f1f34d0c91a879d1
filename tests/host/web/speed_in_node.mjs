// node speed_in_node.mjs LINK.JS: reads {boards, cases} and prints speedOf() of each case, as JSON.
import { readFileSync } from "node:fs";

const { speedOf } = await import(process.argv[2]);
const { boards, cases } = JSON.parse(readFileSync(0));
const found = cases.map(([info, name]) => speedOf({ getInfo: () => info }, boards, name));
console.log(JSON.stringify(found));
