// A flight of a quadrotor in the page: flown at the contract's rate in real time, drawn in 3-D,
// pushed, and with another airframe or wind while it flies. Its policies are tried in the gate.
import { chooseModule } from "./core.js";
import { Flight, GOES_ON, Trials } from "./flight.js";
import { Scene } from "./scene.js";
import { Settings } from "./settings.js";

const PUSH_M_S = 1, MOST_PUSH_M_S = 3;
const TRIALS = 10, TRIAL_MS = 4; // flights of a policy; of each frame
const TRAINING_S = 4; // after which a flight begins anew, while the policy changes
const TURN_A_PIXEL = 0.008, TURN_A_KEY = 0.12;
const SHOWN_S = 0.6; // of a push
const CALM_S = 0.5; // within the radius, after a push
const KEYS = {
  ArrowLeft: "left", ArrowRight: "right", ArrowUp: "away", ArrowDown: "near", PageUp: "up", PageDown: "down",
};
const WORDS = {
  left: "to the left", right: "to the right", away: "away from you", near: "towards you", up: "up", down: "down",
};
const PARTS = ["scene", "pushes", "scene-keys", "trials", "drone"]; // of the page, for flights alone

const get = (id) => document.getElementById(id);
const percent = (part) => Math.round(100 * part);

async function read(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path} cannot be fetched: ${response.status}.`);
  return response;
}

/** What a FlightPlayer needs: {module, document}. */
export async function loadFlight() {
  const bytes = async (kind) => (await read(`flight-${kind}.wasm`)).arrayBuffer();
  const [document, { module }] = await Promise.all([(await read("flight.json")).json(), chooseModule(bytes)]);
  return { module, document };
}

export class FlightPlayer {
  /** For an experiment with a gate; say(text) tells those who do not see it what happens. */
  constructor({ module, document }, description, places, say) {
    this.flight = new Flight(module, document);
    this.trials = new Trials(module, document, description.gate, TRIALS);
    Object.assign(this, { document, places, say, gate: description.gate, values: {} });
    this.scene = new Scene(get("scene"));
    this.time = this.due = 0; // s, of the flight; of ticks to come
    this.pull = this.pushed = null;
    this.isStale = true;
    this.ending = new AbortController();
    for (const id of PARTS) get(id).hidden = false;
    const tables = document.tables.map((name, index) => new Option(name, index + 1));
    get("airframe").replaceChildren(new Option("own values", 0), ...tables);
    get("trials").textContent = "";
    this.#listen();
  }

  close() {
    this.ending.abort();
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
      this.values = values;
      this.#resetDrone();
    }
    this.flight.exports.begin_flight(seed, number, true);
    this.scene.clear();
    this.time = this.due = 0;
    this.pushed = null;
    this.isStale = true;
    this.#draw(0);
  }

  advance(seconds, isTraining) {
    this.#try();
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
    if (cause !== GOES_ON && !isTraining) this.say(`The flight ended: ${this.document.causes[cause]}.`);
    return cause !== GOES_ON || (isTraining && this.time > TRAINING_S);
  }

  // ---- The drone ----

  // The run's own airframe, in what the gate has about it.
  #resetDrone() {
    this.flight.setAll(this.values);
    this.flight.setAll({ wind_m_s2: 0, ...this.gate.settings, spread: 0, rotor_spread: 0 });
    const stated = Number(this.values.airframe ?? 1);
    get("airframe").value = String(stated <= this.document.tables.length ? stated : 1);
    this.flight.exports.take_table(Number(get("airframe").value));
    const shown = this.document.sliders.map((name) => this.document.settings[this.flight.index.get(name)]);
    const parameters = shown.map((each) => ({ ...each, default: this.flight.get(each.name) }));
    this.settings = new Settings(get("drone-settings"), parameters, (name) => this.#changed(name), "drone");
    this.flight.exports.change_dynamics();
    this.isStale = true;
  }

  #changed(name) {
    const value = this.settings.values()?.[name];
    if (value === undefined) return;
    this.flight.set(name, value);
    this.flight.exports.change_dynamics();
    this.isStale = true;
  }

  #takeTable() {
    this.flight.exports.take_table(Number(get("airframe").value));
    this.flight.exports.change_dynamics();
    for (const name of this.document.sliders) this.settings.set(name, this.flight.get(name));
    this.isStale = true;
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
    const on = (target, kind, act) => target.addEventListener(kind, act, { signal: this.ending.signal });
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
      if (held === "drone") this.pull = this.scene.pull(...at(event), MOST_PUSH_M_S);
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
      this.say("The drone is as it was.");
    });
    on(window, "resize", () => (this.isStale = true));
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => (this.isStale = true));
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
    const tilt = (180 / Math.PI) * Math.acos(Math.max(-1, Math.min(1, 1 - 2 * (q[1] ** 2 + q[2] ** 2))));
    this.places.words.textContent = [
      `${apart.toFixed(2)} m from the target`, `${Math.hypot(...v).toFixed(2)} m/s`, `tilt ${tilt.toFixed(0)}°`,
      `rotors ${Array.from(moment.rotor_speed, percent).join(" ")} %`,
      `wind ${Math.hypot(...moment.gust_m_s2).toFixed(1)} m/s²`,
    ].join(" · ");
    if (!this.pushed || this.pushed.calm >= CALM_S) return;
    this.pushed.calm = apart <= this.gate.radius_m ? this.pushed.calm + seconds : 0;
    if (this.pushed.calm < CALM_S || this.time - this.pushed.at < 2 * CALM_S) return;
    this.say(`At the target ${(this.time - this.pushed.at - this.pushed.calm).toFixed(1)} s after the push.`);
  }

  #try() {
    const result = this.trials.work(TRIAL_MS);
    if (!result) return;
    const { origin, flown, hovered } = result;
    const flights = `${hovered} of ${flown} flights of the gate ${this.gate.name} succeed`;
    get("trials").textContent = `${origin}: ${flights}, ${this.gate.rule}.`;
    get("trials").dataset.hovered = hovered;
    get("trials").classList.toggle("good", hovered === flown);
  }
}
