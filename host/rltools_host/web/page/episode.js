// An episode that a policy plays in the page, step by step in real time, by the environment's
// picture. flight_panel.js has the same for a quadrotor.
import { Core, ENDED, CONTINUES } from "./core.js";
import { Picture } from "./picture.js";

const SHOWN = 4; // channels in words

export class EpisodePlayer {
  /** `elements`: {svg, words, slider, row}; `compiled` is the experiment's module. */
  constructor(compiled, description, elements) {
    this.core = new Core(compiled);
    this.compiled = compiled;
    this.description = description;
    this.elements = elements;
    this.picture = new Picture(elements.svg, description.picture);
    elements.svg.setAttribute("aria-label", `${description.environment.name}, played by the policy`);
    elements.row.hidden = false;
    this.due = 0; // s
    this.pushing = false;
    const { svg, slider } = elements;
    this.listeners = new AbortController();
    const on = (target, kind, act) => target.addEventListener(kind, act, { signal: this.listeners.signal });
    const follow = (event) => {
      const { left, width } = svg.getBoundingClientRect();
      slider.value = Math.max(-1, Math.min(1, ((event.clientX - left) / width) * 2 - 1));
      this.pushing = true;
    };
    const release = () => {
      this.pushing = false;
      slider.value = 0;
    };
    on(slider, "input", () => (this.pushing = true));
    for (const kind of ["change", "pointerup", "blur"]) on(slider, kind, release);
    on(svg, "pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      follow(event);
    });
    on(svg, "pointermove", (event) => this.pushing && follow(event));
    for (const kind of ["pointerup", "pointercancel"]) on(svg, kind, release);
  }

  /** Removes itself from the page, for another player. */
  close() {
    this.listeners.abort();
    this.elements.svg.toggleAttribute("hidden", true);
    this.elements.row.hidden = true;
  }

  /** Plays an image; throws Refused where it cannot be played, and the one before then plays on. */
  open(image) {
    new Core(this.compiled).openPolicy(image);
    this.core.openPolicy(image);
  }
  /** Plays the run's policy as it is now, and the step that it is of. */
  follow(image) {
    this.core.openPolicy(image);
  }

  /** Begins episode `number` of the seed, by these values of the hyperparameters. */
  begin(seed, number, values) {
    this.description.hyperparameters.forEach(({ name, type }, index) => {
      if (name in values) this.core.setHyperparameter(index, type, values[name]);
    });
    this.core.exports.begin_episode(seed, number);
    this.#draw();
  }

  /** Advances by so many seconds; returns true where the episode is over. */
  advance(seconds) {
    const interval = this.core.exports.step_s();
    let outcome = null;
    for (this.due += seconds; this.due >= interval && outcome !== ENDED; this.due -= interval) {
      outcome = this.core.exports.step_episode(this.pushing ? Number(this.elements.slider.value) : NaN);
      if (outcome !== CONTINUES && outcome !== ENDED) return false;
    }
    if (outcome !== null) this.#draw();
    return outcome === ENDED;
  }

  /** Returns the names that it cannot set: a link restores the run alone. */
  restore(words) {
    return Object.keys(words);
  }
  changes() {
    return {};
  }

  #draw() {
    const { observations, actions } = this.description.environment;
    const names = [...observations, ...actions].map(({ name }) => name);
    const values = [...this.core.observation(observations.length), ...this.core.action(actions.length)];
    this.picture.draw(new Map(names.map((name, index) => [name, values[index]])));
    const words = names.slice(0, SHOWN).map((name, index) => `${name.replaceAll("_", " ")} ${values[index].toFixed(2)}`);
    const total = this.core.exports.episode_return().toLocaleString("en", { maximumFractionDigits: 1 });
    this.elements.words.textContent = [`return ${total}`, ...words].join(" · ");
  }
}
