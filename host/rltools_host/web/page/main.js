// The page: what the worker trains is shown, and the policy it has plays episodes here.
import { prepareBoard } from "./board_entry.js";
import { Refused } from "./core.js";
import { Curve } from "./curve.js";
import { EpisodePlayer } from "./episode.js";
import { number, showMetrics, showStates } from "./results.js";
import { Settings } from "./settings.js";

const get = (id) => document.getElementById(id);
const LONGEST_FILE = 1 << 28;
const NAMES = { lanes: "this browser, fused", exact: "this browser, exact multiply-add (slower)" };
const OF_DRONE = "drone."; // before the names of the address that are not the run's
const TRAINING_FRAME_MS = 25; // until the next frame is asked for: 30 a second of 60, or a bit more
const curve = new Curve(get("curve"));
const worker = new Worker("worker.js", { type: "module" });

const elements = { svg: get("picture"), words: get("channels"), slider: get("push"), row: get("push-row") };
let site, description, compiled, settings;
let boardChanged; // to call when another experiment is shown
let resolveRun = () => {}; // to the board, once the worker has sent it
let player = null; // of what is shown: an EpisodePlayer or a FlightPlayer
let lacking = ""; // why there is none
let openedImage = null; // of the file that is played
let reporter = "page"; // whose run the curve and the metrics show: page, board
let lastImage = null, lastStep = 0; // of the run's policy
let training = "none"; // none, at-rest, running, finished
let ranWith = null; // the values of the run that is here
let hasBegun = false; // that run: Train no longer takes the fields, but for more steps
let kept = { step: 0 }; // the run that the browser keeps of this experiment: its step and values
let atStake = 0, savedStep = 0; // steps of the run that another one would replace; of the one that a file has
let boardValues = null; // of the board's run, which is shown
let droneWords = {}; // of the address
let wrongWords = []; // of it, by their names
let seen = { episodes: 0 }, shown = "training", episode = 0, wait = 0, time = 0; // s, but for the frame's time
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches, moduleKind = "";

function say(text, isBad = false) {
  get("status").textContent = text;
  get("status").classList.toggle("bad", isBad);
}


// ---- The address ---------------------------------------------------------------------------------

function address() {
  const words = new URLSearchParams({ experiment: description.name });
  for (const [name, value] of Object.entries(settings.changes(inForce() ?? undefined))) words.set(name, value);
  const changes = player ? player.changes() : droneWords;
  for (const [name, value] of Object.entries(changes)) words.set(OF_DRONE + name, value);
  return `#${words}`;
}

/** Returns the values of the run that is shown; null before it begins. */
function inForce() {
  if (reporter === "board") return boardValues;
  return hasBegun ? ranWith : null;
}

/** Marks the fields that differ from the run that is shown. */
function markFields() {
  const names = settings.mark(inForce());
  const further = furtherSteps(), others = names.filter((name) => name !== "steps" || !further);
  const [are, they] = others.length === 1 ? ["is", "It applies"] : ["are", "They apply"];
  const texts = further ? [`Train continues to step ${number(further)}.`] : [];
  if (others.length) texts.push(`Not what the run has: ${others.join(", ")} ${are} edited. ${they} after the next reset.`);
  get("settings-note").textContent = texts.join(" ") || "Changed fields apply after the next reset; more steps apply at once.";
  if (training === "finished") get("train").disabled = !further;
}

/** Returns the steps to which the page's run may continue: those of the field where they are more, else 0. */
function furtherSteps() {
  const steps = hasBegun && reporter === "page" ? settings.value("steps") : 0;
  return steps > ranWith?.steps ? steps : 0;
}

function fieldChanged() {
  markFields();
  addressLater();
}

let addressTimer = 0;
/** Updates the address later: browsers limit its changes. */
function addressLater() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => history.replaceState(null, "", address()), 300);
}

/** Takes the address's values into the fields, and what is about a drone into droneWords. */
function takeAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  address.delete("experiment");
  const words = [...address].map(([name, value]) => [name, value.trim() === "" ? NaN : Number(value)]);
  const isOfDrone = ([name]) => name.startsWith(OF_DRONE);
  droneWords = Object.fromEntries(words.filter(isOfDrone).map(([name, value]) => [name.slice(OF_DRONE.length), value]));
  settings.setDefaults();
  const wrong = words.filter((word) => !isOfDrone(word) && !settings.set(...word));
  wrongWords = wrong.map(([name]) => name);
}

/** Returns what is wrong with the address, or an empty text. */
function addressFault() {
  const names = wrongWords.map((name) => name.slice(0, 20)).join(", ");
  return names && `The link's ${names} cannot be set; the rest is.`;
}

/** Returns whether the address states a hyperparameter. */
const addressStates = () => Object.keys(settings.changes()).length > 0 || wrongWords.length > 0;

/** Has the service worker keep what was opened, for use without a network. */
function keepOffline(addresses) {
  navigator.serviceWorker?.ready.then(({ active }) => active.postMessage(addresses));
}

function experimentOfAddress() {
  const name = new URLSearchParams(location.hash.slice(1)).get("experiment");
  return site.experiments.includes(name) ? name : site.experiments[0];
}

// ---- Training ------------------------------------------------------------------------------------

function setTraining(state) {
  training = state;
  get("train").textContent = state === "running" ? "Pause" : "Train";
  get("train").disabled = state === "none" || (state === "finished" && !furtherSteps());
  for (const id of ["reset", "share"]) get(id).disabled = state === "none";
  for (const id of ["save-checkpoint", "save-policy"]) get(id).disabled = state === "none" || state === "running";
}

function load(name) {
  setTraining("none");
  say(`Loading ${name}.`);
  worker.postMessage({ kind: "load", name });
}

/** Asks before a run is dropped that no file holds. */
function mayDrop() {
  if (atStake && atStake !== savedStep && !confirm(`Drop the run of ${number(atStake)} steps? No file holds it.`)) return false;
  atStake = 0;
  get("kept").hidden = true;
  return true;
}

function reset(drops = false) {
  const values = settings.values();
  if (!values) return say("A hyperparameter is not within its bounds.", true);
  ranWith = values;
  hasBegun = false;
  showRunOf("page", values.steps);
  worker.postMessage({ kind: "reset", values, drops });
  history.replaceState(null, "", address());
  playTraining();
}

function showProgress(step, steps) {
  get("progress").value = Math.min(1, step / steps);
}

/** Clears the figures of the run before. */
function showRunOf(who, steps) {
  reporter = who;
  markFields();
  seen = { episodes: 0 };
  curve.clear(steps);
  get("numbers").textContent = "";
  get("metrics").replaceChildren();
  showProgress(0, steps);
}

function showReport({ step, steps, updates, episodes, lastReturn, rate, metrics }) {
  showProgress(step, steps);
  const parts = [`step ${number(step)}`, `${number(updates)} updates`, `${number(episodes)} episodes`];
  if (Number.isFinite(rate)) parts.push(`${number(rate, 0)} steps/s`);
  get("numbers").textContent = parts.join(" · ");
  if (episodes !== seen.episodes) curve.addEpisode(step, lastReturn);
  seen = { episodes };
  showMetrics(get("metrics"), description.metrics, metrics);
}

function showEvaluation({ step, mean, std }) {
  curve.addEvaluation(step, mean, std);
  say(`Step ${number(step)}: return ${number(mean)} ± ${number(std)}.`);
}

/** Shows what takes the files of the buttons, on a computer. */
function showCommands(step) {
  const { name, gate } = description;
  const lines = [
    `rlt evaluate ${name}.rltp${gate ? ` --gate ${gate.name}` : ""}`,
    `rlt train --resume ${name}-${step}.safetensors${step < ranWith.steps ? "" : ` --steps ${2 * step}`}`,
  ];
  get("commands").replaceChildren("Then, on a computer:", ...lines.map((line) => {
    const code = document.createElement("code");
    code.textContent = line;
    return code;
  }));
}

function showState(step, hash, device = NAMES[moduleKind], values = ranWith) {
  if (device === NAMES[moduleKind]) showCommands(step);
  const known = site.states.filter((each) => each.experiment === description.name);
  const isUsual = Object.keys(settings.changes(values)).every((name) => name === "seed" || name === "steps");
  showStates(get("devices"), { step, hash, device, values, known, isUsual });
}

const answers = {
  loaded(data) {
    ({ description, moduleKind, module: compiled, kept } = data);
    [lastImage, atStake, savedStep] = [null, kept.step, 0];
    settings = new Settings(get("settings"), description.hyperparameters, fieldChanged);
    get("experiment").value = description.name;
    takeAddress();
    showPlayer();
    reset();
    setTraining("at-rest");
    boardChanged();
    keepOffline(data.opened);
    const fault = addressFault();
    say(fault || `Ready: ${description.algorithm} on ${description.environment.name}.`, Boolean(fault));
    const isMeant = !addressStates() || !settings.mark(kept.values ?? ranWith).length;
    markFields();
    get("kept").hidden = !kept.step || isMeant;
    get("kept").textContent = `Continue the run of ${number(kept.step)} steps`;
    if (kept.step && isMeant) worker.postMessage({ kind: "restoreKept" });
  },
  progress(report) {
    atStake = report.step;
    if (reporter === "page") showReport({ ...report, steps: ranWith.steps });
  },
  evaluation(report) {
    if (reporter === "page") showEvaluation(report);
  },
  policy({ step, image }) {
    const isFirst = lastImage === null;
    [lastImage, lastStep] = [image, step];
    if (shown === "training") player?.follow(image, step);
    if (isFirst) begin();
  },
  state({ step, hash }) {
    showState(step, hash);
  },
  paused({ step, hash }) {
    setTraining("at-rest");
    showState(step, hash);
    say(`Paused at step ${number(step)}.`);
  },
  finished({ step, hash }) {
    setTraining("finished");
    showState(step, hash);
    const same = get("devices").querySelector(".same"), other = get("devices").querySelector(".other");
    const clause = same ? ": the bits of the devices below" : other ? ": not the bits of the devices below" : "";
    say(`Finished ${number(step)} steps${clause}.`, Boolean(other));
  },
  diverged({ step, why }) {
    setTraining("finished");
    say(`Training stopped at step ${number(step)}: ${why}.`, true);
  },
  checkpoint({ step, file }) {
    savedStep = step;
    download(file, `${description.name}-${step}.safetensors`);
  },
  run(data) {
    resolveRun(data);
  },
  notKept({ reason }) {
    get("shown").textContent += ` This browser does not keep the run (${reason}): download its checkpoint.`;
  },
  restored({ step, values, assumed, evaluations, isKept }) {
    for (const [name, value] of Object.entries(values)) settings.set(name, value);
    ranWith = settings.values();
    hasBegun = true;
    showRunOf("page", ranWith.steps);
    for (const each of evaluations) curve.addEvaluation(each.step, each.mean, each.std);
    history.replaceState(null, "", address());
    [atStake, savedStep] = [step, isKept ? 0 : step];
    get("kept").hidden = true;
    const isDone = step >= ranWith.steps;
    setTraining(isDone ? "finished" : "at-rest");
    playTraining();
    const onwards = isDone ? "Train continues it where steps are more" : "Train continues it";
    if (isKept) return say(`The run of before, at step ${number(step)}: ${onwards}.`);
    const which = assumed.length === description.hyperparameters.length ? "the hyperparameters" : assumed.join(", ");
    const clause = assumed.length ? ` It does not state ${which}: the fields' values are taken.` : "";
    say(`Checkpoint restored: ${onwards}.${clause}`);
  },
  refused({ what, reason }) {
    say(what ? `${what}: ${reason}.` : `${reason}.`, true);
  },
  failed({ reason }) {
    setTraining("none");
    say(reason, true);
  },
};
worker.onmessage = ({ data }) => answers[data.kind](data);
worker.onerror = () => say("The worker that trains has failed: reload the page.", true);

// ---- Files ---------------------------------------------------------------------------------------

function download(bytes, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function open(file) {
  if (file.size > LONGEST_FILE) return say(`${file.name}: too large for a checkpoint or a policy.`, true);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (new TextDecoder("latin1").decode(bytes.subarray(0, 4)) !== "RLTP") {
    const values = settings.values();
    if (!values) return say("A hyperparameter is not within its bounds.", true);
    if (!mayDrop()) return;
    return worker.postMessage({ kind: "restore", what: file.name, file: bytes, values });
  }
  if (!player) return say(lacking, true);
  try {
    player.open(bytes);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return say(`${file.name}: ${error.message}.`, true);
  }
  shown = "file";
  openedImage = bytes;
  get("shown").textContent = `Played: ${file.name}. Train or reset shows the run's policy again.`;
  begin();
  say(`${file.name} is played.`);
}

function playTraining() {
  shown = "training";
  get("shown").textContent = "Played: the policy of the run above, as it is now.";
  if (lastImage && player) player.follow(lastImage, lastStep), (episode = 0), begin();
}

// ---- The episode that is played ------------------------------------------------------------------

/** Loads the quadrotor's module, if the page needs it. */
async function showPlayer() {
  const now = description;
  player?.close();
  player = null;
  lacking = "Loading: open the file again in a moment.";
  try {
    const flights = now.gate && (await import("./flight_panel.js"));
    const loaded = flights && (await flights.loadFlight());
    if (now !== description) return; // another experiment was chosen meanwhile
    if (flights) player = new flights.FlightPlayer(loaded, now, elements, sayOfFlight, addressLater);
    else player = new EpisodePlayer(compiled, now, elements);
    const wrong = player.restore(droneWords).map((name) => OF_DRONE + name);
    wrongWords.push(...wrong);
    if (wrong.length) say(addressFault(), true);
    if (lastImage) playTraining();
    keepOffline(performance.getEntriesByType("resource").map((each) => each.name));
  } catch (error) {
    say((lacking = `Nothing can be played: ${error.message}`), true);
  }
}

/** In a line of its own: flights report every half second. */
function sayOfFlight(text) {
  get("flight").textContent = text;
}

function begin() {
  wait = 0;
  if (player && lastImage) player.begin(ranWith?.seed ?? 0, episode++, ranWith ?? {});
}

function setPlaying(value) {
  playing = value;
  get("play").textContent = value ? "Pause" : "Play";
}

/** While training, half of the frames are enough: what draws has caches and processors in common
 * with what trains. */
function askForFrame() {
  if (training !== "running") return requestAnimationFrame(frame);
  setTimeout(() => requestAnimationFrame(frame), TRAINING_FRAME_MS);
}

function frame(now) {
  askForFrame();
  const elapsed = Math.min(0.1, (now - time) / 1000);
  time = now;
  if (!player || !lastImage || document.hidden) return;
  if (wait > 0) {
    wait -= elapsed;
    if (wait <= 0) begin();
  } else if (player.advance(playing ? elapsed : 0, training === "running")) wait = 0.7;
}

// ---- Start ---------------------------------------------------------------------------------------

get("train").addEventListener("click", () => {
  if (training === "running") return worker.postMessage({ kind: "pause" });
  if (!hasBegun) {
    if (!settings.values()) return say("A hyperparameter is not within its bounds.", true);
    if (!mayDrop()) return;
    const isEdited = settings.mark(ranWith).length > 0;
    if (isEdited) reset(); // no step of it is done
    hasBegun = true;
  }
  const further = furtherSteps();
  if (further) {
    ranWith = { ...ranWith, steps: further };
    curve.steps = further;
  }
  if (reporter !== "page") showRunOf("page", ranWith.steps);
  markFields();
  history.replaceState(null, "", address());
  if (shown !== "training") playTraining();
  worker.postMessage({ kind: "train", steps: ranWith.steps });
  setTraining("running");
  say("Training.");
});
get("reset").addEventListener("click", () => {
  if (!settings.values()) return say("A hyperparameter is not within its bounds.", true);
  if (!mayDrop()) return;
  reset(true);
  setTraining("at-rest");
  say("Reset: no step done.");
});
get("share").addEventListener("click", async () => {
  history.replaceState(null, "", address());
  const which = settings.mark(inForce()).length ? "as the run has it, not as the fields say" : "and every setting";
  const restores = `it restores the experiment ${which}.`;
  try {
    await navigator.clipboard.writeText(location.href);
    say(`The link is copied: ${restores}`);
  } catch {
    say(`The page's address is the link: ${restores}`);
  }
});
get("save-checkpoint").addEventListener("click", () => worker.postMessage({ kind: "checkpoint" }));
get("save-policy").addEventListener("click", () => download(lastImage, `${description.name}.rltp`));
get("open").addEventListener("change", ({ target }) => {
  if (target.files.length) open(target.files[0]);
  target.value = "";
});
get("kept").addEventListener("click", () => worker.postMessage({ kind: "restoreKept" }));
get("again").addEventListener("click", begin);
get("play").addEventListener("click", () => setPlaying(!playing));
get("experiment").addEventListener("change", ({ target }) => {
  history.replaceState(null, "", `#experiment=${target.value}`);
  load(target.value);
});
addEventListener("hashchange", () => load(experimentOfAddress()));

setPlaying(playing);
boardChanged = prepareBoard({
  experiment: () => (description ? { description, compiled } : null),
  settings: () => settings,
  played: () => (shown === "file" ? { image: openedImage, name: "The opened policy" } : lastImage && { image: lastImage, name: "The run's policy" }),
  boards: () => site.boards,
  begin(values) {
    if (training === "running") worker.postMessage({ kind: "pause" });
    boardValues = values;
    showRunOf("board", values.steps);
  },
  boardContinues(values) {
    [reporter, boardValues] = ["board", values];
    markFields();
  },
  resumed(values) {
    boardValues = values; // may have been set meanwhile
    markFields();
  },
  fieldsSet: fieldChanged,
  run() {
    if (training === "running" || training === "none") return null;
    const values = ranWith;
    worker.postMessage({ kind: "run" });
    return new Promise((resolve) => (resolveRun = (found) => resolve({ ...found, values })));
  },
  progress: (report) => reporter === "board" && showReport(report),
  evaluation: (report) => reporter === "board" && showEvaluation(report),
  state: showState,
  open,
  download,
});
site = await (await fetch("site.json")).json();
for (const name of site.experiments) get("experiment").append(new Option(name, name));
for (const { name, title, baud } of site.boards) get("board-kind").append(new Option(`${title} (${number(baud)} baud)`, name));
load(experimentOfAddress());
requestAnimationFrame(frame);
if ("serviceWorker" in navigator) navigator.serviceWorker.register("service-worker.js").catch(() => {});
