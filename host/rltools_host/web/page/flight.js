// Flights of a quadrotor in the core (host/native/flight_module.cpp). Names, bounds and positions of
// all numbers are those of flight.json, which `rlt web` takes from the core.
import { Module, bitsOf } from "./core.js";

export const CONTINUES = 0; // of fly(); else a number of flight.json's causes
const TICKS_AT_ONCE = 250;

export class Flight extends Module {
  constructor(module, document) {
    super(module);
    this.document = document;
    this.index = new Map(document.settings.map(({ name }, index) => [name, index]));
    this.tickSeconds = this.exports.tick_s();
  }

  /** False where it is no number within the setting's bounds. */
  set(name, value) {
    const index = this.index.get(name);
    if (index === undefined) return false;
    return Boolean(this.exports.set_setting(index, bitsOf(this.document.settings[index].type, value)));
  }
  get(name) {
    const index = this.index.get(name);
    const bits = new DataView(new ArrayBuffer(4));
    bits.setUint32(0, this.exports.get_setting(index));
    return this.document.settings[index].type === "U32" ? bits.getUint32(0) : bits.getFloat32(0);
  }
  setAll(values) {
    for (const [name, value] of Object.entries(values)) this.set(name, value);
  }

  /** All fields of a moment by their names, as copies. */
  read() {
    const address = this.exports.read_flight();
    const moment = { thrusts: this.floats(this.exports.commanded_thrusts(), 4).slice() };
    for (const [name, [offset, count, type]] of Object.entries(this.document.reading)) {
      const View = type === "u4" ? Uint32Array : Float32Array;
      moment[name] = new View(this.exports.memory.buffer, address + offset, count).slice();
    }
    return moment;
  }
}

/** Tries policies in the flights of a gate, some milliseconds at a time. */
export class Trials {
  constructor(module, document, gate, count) {
    this.flight = new Flight(module, document);
    this.flight.setAll(gate.settings);
    this.gate = gate;
    this.count = count;
    this.next = this.current = null;
  }

  /** The policy to try when the flights of the one before are over. */
  offer(image, origin) {
    this.next = { image, origin };
  }

  /** {origin, flown, hovered} where all flights of a policy are over, else null. */
  work(milliseconds) {
    const { exports } = this.flight, { gate } = this;
    const end = performance.now() + milliseconds;
    if (!this.current && this.next) {
      this.flight.openPolicy(this.next.image);
      this.current = { origin: this.next.origin, flown: 0, hovered: 0, ticks: 0 };
      this.next = null;
    }
    while (this.current && performance.now() < end) {
      const now = this.current;
      if (now.ticks === 0) {
        exports.begin_flight(gate.seed, now.flown, false);
        exports.judge_flight(gate.ticks - gate.judged, gate.radius_m);
      }
      const ticks = Math.min(TICKS_AT_ONCE, gate.ticks - now.ticks);
      const cause = exports.fly(ticks);
      now.ticks += ticks;
      if (cause === CONTINUES && now.ticks < gate.ticks) continue;
      if (cause === CONTINUES && exports.judged_ticks_within() >= gate.needed) now.hovered++;
      now.flown++;
      now.ticks = 0;
      if (now.flown < this.count) continue;
      this.current = null;
      return now;
    }
    return null;
  }
}
