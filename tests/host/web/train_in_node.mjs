// node train_in_node.mjs CORE.JS LANES.WASM EXACT.WASM STEPS: trains, and prints JSON: which module
// was taken, the state's hash, the evaluations' mean returns, and how long it took.
import { readFileSync } from "node:fs";

const [, , core, lanes, exact, steps] = process.argv;
const { Core, chooseModule, EVALUATION_DUE, FINISHED, TRAINING } = await import(core);
const files = { lanes, exact };
const { module, kind } = await chooseModule(async (name) => readFileSync(files[name]));
const run = new Core(module);
run.setHyperparameter(1, "U32", Number(steps)); // RLT_RUN_HYPERPARAMETERS: seed, steps
run.exports.begin_training();
const returns = [];
const begin = performance.now();
let progress = TRAINING;
while (progress === TRAINING || progress === EVALUATION_DUE) {
  progress = run.exports.train(1000);
  if (progress === EVALUATION_DUE || progress === FINISHED) returns.push(run.evaluate().mean);
}
const seconds = (performance.now() - begin) / 1000;
const finished = progress === FINISHED;
console.log(JSON.stringify({ kind, finished, hash: run.stateHash(), returns, seconds }));
