// node fly_in_node.mjs PAGE FLIGHT.JSON LANES.WASM EXACT.WASM IMAGE GATES.JSON: tries a policy in each of
// some gates, and prints JSON of each: the kind of module, how many flights succeeded of how many, and
// of the first flight the cause and the bytes of the last moment as hexadecimal.
import { readFileSync } from "node:fs";

const [, , page, document, lanes, exact, image, gates] = process.argv;
const { chooseModule } = await import(`${page}/core.js`);
const { Flight, Trials } = await import(`${page}/flight.js`);
const files = { lanes, exact };
const { module, kind } = await chooseModule(async (name) => readFileSync(files[name]));
const known = JSON.parse(readFileSync(document));
const policy = new Uint8Array(readFileSync(image));
for (const { count, ...gate } of JSON.parse(readFileSync(gates))) {
  const trials = new Trials(module, known, gate, count);
  trials.offer(policy, "");
  let result = null;
  while (!result) result = trials.work(1000);
  const flight = new Flight(module, known);
  flight.setAll(gate.settings);
  flight.openPolicy(policy);
  flight.exports.begin_flight(gate.seed, 0, false);
  const cause = flight.exports.fly(gate.ticks - 1);
  const bytes = flight.bytes(flight.exports.read_flight(), known.reading_bytes).slice();
  console.log(JSON.stringify({ kind, ...result, cause, moment: Buffer.from(bytes).toString("hex") }));
}
