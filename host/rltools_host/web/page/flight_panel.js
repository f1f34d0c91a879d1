// A flight of a quadrotor in the page: flown at the contract's rate in real time, drawn in 3-D,
// pushed, and with another airframe or wind while it flies. Its policies are tried in the gate.
import { chooseModule, read } from "./core.js";
import { Flight, CONTINUES, Trials } from "./flight.js";
import { Scene } from "./scene.js";
import { Settings, isWithin } from "./settings.js";

const PUSH_M_S = 1, MAX_PUSH_M_S = 3;
const TRIALS = 10, TRIAL_MS = 8, TRAINING_TRIAL_MS = 2; // flights of a policy; of each frame
const WORDS_S = 0.2; // until the description in words is renewed
const TRAINING_S = 4; // after which a flight restarts, while the policy changes
const TURN_A_PIXEL = 0.008, TURN_A_KEY = 0.12;
const SHOWN_S = 0.6; // of a push
const CALM_S = 0.5; // within the radius, after a push
const KEYS = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "away", ArrowDown: "near", PageUp: "up", PageDown: "down",
};
const WORDS = {
  left: "to the left", right: "to the right", away: "away from you", near: "toward you", up: "up", down: "down",
};
const PARTS = ["scene", "pushes", "scene-keys", "trials", "flight", "drone"]; // of the page, for flights alone

const get = (id) => document.getElementById(id);
const percent = (part) => Math.round(100 * part);

/** Returns a FlightPlayer's {module, document}. */
export async function loadFlight() {
  const bytes = async (kind) => (await read(`flight-${kind}.wasm`)).arrayBuffer();
  const [document, { module }] = await Promise.all([(await read("flight.json")).json(), chooseModule(bytes)]);
  return { module, document };
}

export class FlightPlayer {
  /** For an experiment with a gate; say(text) reports events to those who do not see it, and
   * changed() that the drone is another one. */
  constructor({ module, document }, description, elements, say, changed) {
    this.flight = new Flight(module, document);
    this.trials = new Trials(module, document, description.gate, TRIALS);
    Object.assign(this, { document, elements, say, changed, gate: description.gate, values: {} });
    this.scene = new Scene(get("scene"));
    this.time = this.due = this.describedAt = 0; // s, of the flight; of ticks to come; of the words
    this.wanted = {}; // what is to be changed once there is a drone
    this.settings = null;
    this.pull = this.pushed = null;
    this.isStale = true;
    this.listeners = new AbortController();
    for (const id of PARTS) get(id).hidden = false;
    const tables = document.tables.map((name, index) => new Option(name, index + 1));
    get("airframe").replaceChildren(new Option("the run's", 0), ...tables);
    for (const id of ["trials", "flight"]) get(id).textContent = "";
    this.#listen();
  }

  close() {
    this.listeners.abort();
    for (const id of PARTS) get(id).hidden = true;
  }

  open(image) {
    this.flight.openPolicy(image);
    this.trials.offer(image, "This file's policy");
  }
  follow(image, step) {
    this.flight.openPolicy(image);
    if (step > 0) this.trials.offer(image, `The policy of step ${step.toLocaleString("en")}`);
  }

  begin(seed, number, values) {
    if (this.values !== values) {
      const changes = this.changes();
      this.values = values;
      this.#resetDrone(changes);
    }
    this.flight.exports.begin_flight(seed, number, true);
    this.scene.clear();
    this.time = this.due = 0;
    this.describedAt = -WORDS_S;
    this.pushed = null;
    this.isStale = true;
    this.#draw(0);
  }

  advance(seconds, isTraining) {
    this.#try(isTraining ? TRAINING_TRIAL_MS : TRIAL_MS);
    if (!(seconds > 0)) {
      if (this.isStale) this.#draw(0);
      return false;
    }
    this.due += seconds;
    const ticks = Math.floor(this.due / this.flight.tickSeconds);
    this.due -= ticks * this.flight.tickSeconds;
    this.time += seconds;
    const cause = this.flight.exports.fly(ticks);
    this.#draw(seconds);
    if (cause !== CONTINUES && !isTraining) this.say(`The flight ended: ${this.document.causes[cause]}.`);
    return cause !== CONTINUES || (isTraining && this.time > TRAINING_S);
  }

  // ---- The drone ----

  /** In what the drone and its surroundings differ from the run's, by the names of sliders; of a
   * published table, `airframe` has the number. */
  changes() {
    if (!this.settings) return this.wanted;
    return { ...(this.airframe && { airframe: this.airframe }), ...this.settings.changes() };
  }

  /** Changes it so once there is a drone; the names of what is no such change. */
  restore(changes) {
    const { settings, sliders, tables } = this.document;
    const parameters = sliders.map((name) => settings[this.flight.index.get(name)]);
    const known = [...parameters, { name: "airframe", type: "U32", minimum: 1, maximum: tables.length }];
    const fits = ([name, value]) => known.some((each) => each.name === name && isWithin(each, value));
    const words = Object.entries(changes);
    this.wanted = Object.fromEntries(words.filter(fits));
    return words.filter((word) => !fits(word)).map(([name]) => name);
  }

  // The run's own airframe, or a table's, in what the gate has about it; with what is changed of it.
  #resetDrone({ airframe = 0, ...changes } = {}) {
    const stated = Number(this.values.airframe ?? 1);
    this.airframe = airframe;
    get("airframe").value = String(airframe);
    this.flight.setAll(this.values);
    this.flight.setAll({ wind_m_s2: 0, ...this.gate.settings, spread: 0, rotor_spread: 0 });
    this.flight.exports.take_table(airframe || (stated <= this.document.tables.length ? stated : 1));
    const shown = this.document.sliders.map((name) => this.document.settings[this.flight.index.get(name)]);
    const parameters = shown.map((each) => ({ ...each, default: this.flight.get(each.name) }));
    this.settings = new Settings(get("drone-settings"), parameters, (name) => this.#changed(name), "drone");
    for (const [name, value] of Object.entries(changes)) {
      if (this.settings.set(name, value)) this.flight.set(name, value);
    }
    this.flight.exports.change_dynamics();
    this.isStale = true;
  }

  #changed(name) {
    const value = this.settings.value(name);
    if (value === null) return;
    this.flight.set(name, value);
    this.flight.exports.change_dynamics();
    this.isStale = true;
    this.changed();
  }

  // What is about the drone stays as it is.
  #takeTable() {
    const changes = Object.entries(this.settings.changes());
    const kept = changes.filter(([name]) => this.document.surroundings.includes(name));
    this.#resetDrone({ airframe: Number(get("airframe").value), ...Object.fromEntries(kept) });
    this.changed();
  }

  // ---- Pushes and the view ----

  #push(velocity, words) {
    this.flight.exports.push(...velocity);
    this.pushed = { velocity, at: this.time, calm: 0 };
    this.say(`Pushed ${words} by ${Math.hypot(...velocity).toFixed(1)} m/s.`);
    this.isStale = true;
  }
  #pushTo(side) {
    const { right, up, away } = this.scene.directions();
    const [axis, sign] = {
      left: [right, -1], right: [right, 1], away: [away, 1], near: [away, -1], up: [up, 1], down: [up, -1],
    }[side];
    this.#push(axis.map((each) => sign * PUSH_M_S * each), WORDS[side]);
  }

  #listen() {
    const canvas = get("scene");
    const on = (target, kind, act) => target.addEventListener(kind, act, { signal: this.listeners.signal });
    let held = null; // "drone" or "view"
    const at = ({ clientX, clientY }) => {
      const { left, top } = canvas.getBoundingClientRect();
      return [clientX - left, clientY - top];
    };
    on(canvas, "pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held = this.scene.isAtDrone(...at(event)) ? "drone" : "view";
    });
    on(canvas, "pointermove", (event) => {
      if (held === "view") this.scene.turn(TURN_A_PIXEL * event.movementX, TURN_A_PIXEL * event.movementY);
      if (held === "drone") this.pull = this.scene.pull(...at(event), MAX_PUSH_M_S);
      if (held) this.isStale = true;
    });
    on(canvas, "pointerup", () => {
      if (held === "drone" && this.pull) this.#push(this.pull, "by hand");
      held = this.pull = null;
    });
    on(canvas, "pointercancel", () => (held = this.pull = null));
    on(canvas, "keydown", (event) => {
      const side = KEYS[event.key];
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.shiftKey && event.key.startsWith("Arrow")) {
        const across = (side === "right") - (side === "left"), up = (side === "away") - (side === "near");
        this.scene.turn(TURN_A_KEY * across, TURN_A_KEY * up);
      } else if (side) this.#pushTo(side);
      else if ("+=".includes(event.key)) this.scene.nearer(1.15);
      else if ("-−".includes(event.key)) this.scene.nearer(1 / 1.15);
      else return;
      event.preventDefault();
      this.isStale = true;
    });
    for (const button of get("pushes").querySelectorAll("button")) {
      on(button, "click", () => this.#pushTo(button.dataset.push));
    }
    on(get("airframe"), "change", () => this.#takeTable());
    on(get("drone-reset"), "click", () => {
      this.#resetDrone();
      this.changed();
      this.say("The drone is as it was.");
    });
    const lookUp = () => {
      this.scene.lookUp();
      this.isStale = true;
    };
    on(window, "resize", lookUp);
    const observer = new ResizeObserver(lookUp);
    observer.observe(canvas);
    this.listeners.signal.addEventListener("abort", () => observer.disconnect());
    on(matchMedia("(prefers-color-scheme: dark)"), "change", lookUp);
  }

  // ---- What is shown ----

  #draw(seconds) {
    this.isStale = false;
    const moment = { ...this.flight.read(), tick_s: this.time };
    const push = this.pull ?? (this.pushed && this.time - this.pushed.at < SHOWN_S ? this.pushed.velocity : null);
    const rotors = [this.flight.get("rotor_x_m"), this.flight.get("rotor_y_m")];
    this.scene.draw(moment, seconds, { rotors, radius: this.gate.radius_m, pull: push });
    const { position_m: p, target_position_m: t, velocity_m_s: v, attitude: q } = moment;
    const apart = Math.hypot(p[0] - t[0], p[1] - t[1], p[2] - t[2]);
    if (seconds === 0 || this.time - this.describedAt >= WORDS_S) {
      this.describedAt = this.time;
      const tilt = (180 / Math.PI) * Math.acos(Math.max(-1, Math.min(1, 1 - 2 * (q[1] ** 2 + q[2] ** 2))));
      this.elements.words.textContent = [
        `${apart.toFixed(2)} m from the target`, `${Math.hypot(...v).toFixed(2)} m/s`, `tilt ${tilt.toFixed(0)}°`,
        `rotors ${Array.from(moment.rotor_speed, percent).join(" ")} %`,
        `wind ${Math.hypot(...moment.gust_m_s2).toFixed(1)} m/s²`,
      ].join(" · ");
    }
    if (!this.pushed || this.pushed.calm >= CALM_S) return;
    this.pushed.calm = apart <= this.gate.radius_m ? this.pushed.calm + seconds : 0;
    if (this.pushed.calm < CALM_S || this.time - this.pushed.at < 2 * CALM_S) return;
    this.say(`At the target ${(this.time - this.pushed.at - this.pushed.calm).toFixed(1)} s after the push.`);
  }

  #try(milliseconds) {
    const result = this.trials.work(milliseconds);
    if (!result) return;
    const { origin, flown, hovered } = result;
    const flights = `${hovered} of ${flown} flights of the gate ${this.gate.name} succeed`;
    get("trials").textContent = `${origin}: ${flights}, ${this.gate.rule}.`;
    get("trials").dataset.hovered = hovered;
    get("trials").classList.toggle("good", hovered === flown);
  }
}
