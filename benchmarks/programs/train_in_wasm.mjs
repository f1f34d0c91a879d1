// Trains in WebAssembly and says {kind, finished, hash, returns, seconds, cpu_s}: which module was
// taken, the state's hash, the evaluations' mean returns, the time without them.
//   node train_in_wasm.mjs CORE.JS LANES.WASM EXACT.WASM STEPS [KIND]    prints it as JSON
//   a worker of a browser, beside core.js, lanes.wasm and exact.wasm     takes {steps, kind} by message
// KIND is lanes or exact; left out, it is the one that the page would take.

async function moduleOf({ Core, chooseModule }, read, kind) {
  if (kind !== "exact") {
    const chosen = await chooseModule(read);
    if (kind && chosen.kind !== kind) {
      throw new Error("relaxed SIMD's multiply-add is not fused by this engine on this processor");
    }
    return chosen;
  }
  const module = await WebAssembly.compile(await read("exact"));
  const fault = new Core(module).arithmeticFault();
  if (fault) throw new Error(`its arithmetic is not exact: ${fault}`);
  return { module, kind };
}

// clock() and processor(): seconds.
async function train(core, read, steps, kind, clock, processor) {
  const { EVALUATION_DUE, FINISHED, TRAINING } = core;
  const chosen = await moduleOf(core, read, kind);
  const run = new core.Core(chosen.module);
  run.setHyperparameter(1, "U32", steps); // RLT_RUN_HYPERPARAMETERS: seed, steps
  run.exports.begin_training();
  const returns = [];
  let seconds = 0, cpu = 0, progress = TRAINING;
  while (progress === TRAINING || progress === EVALUATION_DUE) {
    const begin = clock(), processorBegin = processor();
    progress = run.exports.train(1000);
    seconds += clock() - begin;
    cpu += processor() - processorBegin;
    if (progress === EVALUATION_DUE || progress === FINISHED) returns.push(run.evaluate().mean);
  }
  const finished = progress === FINISHED;
  return { kind: chosen.kind, finished, hash: run.stateHash(), returns, seconds, cpu_s: cpu };
}

const clock = () => performance.now() / 1000;

async function inNode() {
  const [, , core, lanes, exact, steps, kind] = process.argv;
  const { readFileSync } = await import("node:fs");
  const files = { lanes, exact };
  const processor = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  const read = async (name) => readFileSync(files[name]);
  const found = await train(await import(core), read, Number(steps), kind, clock, processor);
  return { version: process.versions.node, ...found };
}

async function inWorker({ steps, kind }) {
  const read = async (name) => (await fetch(`${name}.wasm`)).arrayBuffer();
  return train(await import("./core.js"), read, steps, kind, clock, () => 0);
}

const failed = (error) => ({ error: error.message });
if (globalThis.process) {
  console.log(JSON.stringify(await inNode().catch(failed)));
} else {
  self.onmessage = async ({ data }) => self.postMessage(await inWorker(data).catch(failed));
}
