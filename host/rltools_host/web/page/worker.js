// Trains, so that the page never stalls. Messages in: {kind, ...} of `commands`; out: {kind, ...}.
import { Core, EVALUATION_DUE, FINISHED, NOT_FINITE, Refused, TRAINING, chooseModule, read } from "./core.js";
import { checkpointOf, safetensorsOf } from "./checkpoint.js";
import { drop, keep, kept } from "./kept.js";

const SLICE_MS = 25, REPORT_MS = 200, POLICY_MS = 500;
const KEEP_MS = 10_000; // of a run that trains

let description, compiled, moduleKind, core;
let running = false, calls = 1;
let started = { time: 0, step: 0 }; // when training was begun, or resumed
let reportTime = 0, policyTime = 0, keptTime = 0;
let values = null, evaluations = []; // of the run
let isKept = true; // until that fails once

/** `moved`: buffers that become the page's, of which none is left here. */
function send(kind, content = {}, moved = []) {
  self.postMessage({ kind, ...content }, moved);
}

function set(target, values) {
  description.hyperparameters.forEach((parameter, index) => {
    const value = values[parameter.name];
    if (value === undefined) return;
    if (typeof value !== "number" || !target.setHyperparameter(index, parameter.type, value)) {
      throw new Refused(`${parameter.name} is not within its bounds`);
    }
  });
}

function progress(now) {
  const { exports } = core;
  const step = exports.steps_done();
  const seconds = (now - started.time) / 1000;
  send("progress", {
    step,
    updates: exports.updates_done(),
    episodes: exports.episodes_done(),
    lastReturn: exports.last_return(),
    rate: started.time ? (step - started.step) / seconds : NaN,
    metrics: description.metrics.map((_, index) => exports.metric(index)),
  });
  exports.clear_metrics();
  reportTime = now;
}

function policy(now) {
  const image = core.policy();
  send("policy", { step: core.exports.steps_done(), image }, [image.buffer]);
  policyTime = now;
}

function state(kind) {
  policy(performance.now());
  keepRun();
  send(kind, { step: core.exports.steps_done(), hash: core.stateHash() });
}

/** Keeps the run as it is now; one without a step is none. */
async function keepRun() {
  const step = core?.exports.steps_done();
  keptTime = performance.now();
  if (!step || !isKept) return;
  try {
    await keep(description.name, { file: core.checkpoint(), step, values, evaluations });
  } catch (error) {
    isKept = false;
    send("notKept", { reason: String(error?.message ?? error) });
  }
}

const keptOf = (name) => kept(name).catch(() => undefined); // as keepRun() says it

// One slice of work; other messages come between two.
const channel = new MessageChannel();
channel.port1.onmessage = () => {
  if (!running) return;
  const begin = performance.now();
  let now = begin, outcome = TRAINING;
  while (outcome === TRAINING && now - begin < SLICE_MS) {
    outcome = core.exports.train(calls);
    const after = performance.now();
    calls = after - now < SLICE_MS / 4 ? Math.min(calls * 2, 4096) : Math.max(1, calls >> 1);
    now = after;
  }
  const step = core.exports.steps_done();
  if (outcome === EVALUATION_DUE || outcome === FINISHED) {
    const evaluation = core.evaluate();
    if (core.stopped()) outcome = NOT_FINITE;
    else {
      evaluations.push({ step, ...evaluation });
      send("evaluation", evaluations.at(-1));
    }
  }
  if (now - reportTime > REPORT_MS || outcome >= FINISHED) progress(now);
  if (outcome === FINISHED || outcome === NOT_FINITE) {
    running = false;
    if (outcome === NOT_FINITE) return send("diverged", { step, why: core.stopped() });
    return state("finished");
  }
  if (now - policyTime > POLICY_MS) policy(now);
  if (now - keptTime > KEEP_MS) keepRun();
  channel.port2.postMessage(null);
};

const commands = {
  async load({ name }) {
    running = false;
    await keepRun();
    description = await (await read(`${name}/description.json`)).json();
    const chosen = await chooseModule(async (kind) => (await read(`${name}/${kind}.wasm`)).arrayBuffer());
    ({ module: compiled, kind: moduleKind } = chosen);
    core = new Core(compiled);
    if (core.exports.fingerprint() >>> 0 !== description.fingerprint) {
      throw new Error(`The module of ${name} and its description do not belong together.`);
    }
    const { step = 0, values: keptValues } = (await keptOf(name)) ?? {};
    const opened = performance.getEntriesByType("resource").map((each) => each.name);
    send("loaded", { moduleKind, module: compiled, description, kept: { step, values: keptValues }, opened });
  },
  async reset({ values: stated, drops }) {
    running = false;
    const fresh = new Core(compiled);
    set(fresh, stated);
    fresh.exports.begin_training();
    [core, values, evaluations] = [fresh, stated, []];
    if (drops) drop(description.name).catch(() => {});
    started = { time: 0, step: 0 };
    state("state");
  },
  train({ steps }) {
    if (running) return;
    set(core, { steps }); // may be more than before
    values = { ...values, steps };
    running = true;
    started = { time: performance.now(), step: core.exports.steps_done() };
    channel.port2.postMessage(null);
  },
  pause() {
    running = false;
    progress(performance.now());
    state("paused");
  },
  checkpoint() {
    const file = safetensorsOf(core, description, values);
    send("checkpoint", { step: core.exports.steps_done(), file }, [file.buffer]);
  },
  // Takes it as a board does.
  run() {
    const file = core.checkpoint();
    send("run", { step: core.exports.steps_done(), hash: core.stateHash(), file }, [file.buffer]);
  },
  // The run that is here stays where the file is refused.
  restore({ file, values: stated, evaluations: before = [], isKept = false }) {
    const fresh = new Core(compiled);
    const found = checkpointOf(fresh, description, file);
    const names = description.hyperparameters.map(({ name }) => name);
    const own = names.filter((name) => Object.hasOwn(found.hyperparameters, name));
    const all = { ...stated, ...Object.fromEntries(own.map((name) => [name, found.hyperparameters[name]])) };
    set(fresh, all);
    fresh.restore(found.image);
    running = false;
    [core, values, evaluations] = [fresh, all, before];
    started = { time: 0, step: 0 };
    const assumed = isKept ? [] : names.filter((name) => !own.includes(name));
    send("restored", { step: core.exports.steps_done(), values: all, assumed, evaluations, isKept });
    progress(performance.now());
    state("state");
  },
  async restoreKept() {
    const run = await keptOf(description.name);
    if (run) commands.restore({ ...run, isKept: true });
  },
};

self.onmessage = async ({ data }) => {
  try {
    await commands[data.kind](data);
  } catch (error) {
    if (error instanceof Refused) send("refused", { what: data.what ?? "", reason: error.message });
    else send("failed", { reason: error.message });
  }
};
