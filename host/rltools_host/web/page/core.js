// The core in WebAssembly: which of a module's two kinds this engine gets, and classes over its
// functions (firmware/web/module.cpp; flight.js has those of flights).

// A module that has one function, f(a, b, c) = the first lane of f32x4.relaxed_madd(a, b, c).
const RELAXED_MADD = new Uint8Array([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // magic, version
  1, 8, 1, 0x60, 3, 0x7d, 0x7d, 0x7d, 1, 0x7d, // (f32, f32, f32) -> f32
  3, 2, 1, 0, 7, 5, 1, 1, 0x66, 0, 0, // function 0, exported as "f"
  10, 22, 1, 20, 0, // its body
  0x20, 0, 0xfd, 0x13, 0x20, 1, 0xfd, 0x13, 0x20, 2, 0xfd, 0x13, // the splat arguments
  0xfd, 0x85, 2, 0xfd, 0x1f, 0, 0x0b, // relaxed_madd, lane 0, end
]);

// The same of f32x4.splat and f32x4.extract_lane alone: SIMD.
const SIMD = new Uint8Array([...RELAXED_MADD.subarray(0, 29), 10, 11, 1, 9, 0, 0x20, 0, 0xfd, 0x13, 0xfd, 0x1f, 0, 0x0b]);

/** Throws where this browser has not what every module needs. */
function requireSimd() {
  const what = typeof WebAssembly === "undefined" ? "WebAssembly" : WebAssembly.validate(SIMD) ? "" : "SIMD in WebAssembly";
  if (!what) return;
  throw new Error(`This browser has no ${what}, or it is switched off, as in a lockdown mode: take Chrome or Edge from 91, ` +
    "Firefox from 89 or Safari from 16.4 on.");
}

/** Returns whether this engine, on this processor, fuses relaxed SIMD's multiply-add: (1 + 2^-12)^2 -
 * (1 + 2^-11) is then 2^-24, and 0 where the product is rounded first. */
export async function fusesMultiplyAdd() {
  if (!WebAssembly.validate(RELAXED_MADD)) return false;
  const { instance } = await WebAssembly.instantiate(RELAXED_MADD);
  return instance.exports.f(1 + 2 ** -12, 1 + 2 ** -12, -(1 + 2 ** -11)) === 2 ** -24;
}

/** Returns the compiled module for this engine: {module, kind}. read(kind) returns the bytes of "lanes" or
 * "exact". A module whose arithmetic is not exact is not taken; that of neither is an Error. */
export async function chooseModule(read) {
  requireSimd();
  const kinds = (await fusesMultiplyAdd()) ? ["lanes", "exact"] : ["exact"];
  let fault = "";
  for (const kind of kinds) {
    const module = await WebAssembly.compile(await read(kind));
    fault = new Module(module).arithmeticFault();
    if (!fault) return { module, kind };
  }
  throw new Error(`This browser cannot compute the bits of the other devices: ${fault}.`);
}

export const TRAINING = 0, EVALUATION_DUE = 1, FINISHED = 2, NOT_FINITE = 3; // of train()
export const CONTINUES = 0, ENDED = 1; // of stepEpisode()
const HEADER_BYTES = 64, SHA256_AT = 24, SHA256_BYTES = 32;
const DIMENSIONS_AT = 16; // in a policy image: of observations and actions, 16 bits each

/** Returns what to do where training stopped: a board's text has the state of a step that was not
 * finite. */
export const remedyOf = (why) =>
  why.includes("; state ")
    ? "fix the environment, or end its episodes before"
    : "try a smaller learning_rate";

/** A file was refused; the message says why. */
export class Refused extends Error {}

export const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export async function read(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path} cannot be fetched: ${response.status}.`);
  return response;
}

/** Returns the four bytes of a number of this type. */
export function bitsOf(type, value) {
  const bits = new DataView(new ArrayBuffer(4));
  if (type === "U32") bits.setUint32(0, value);
  else bits.setFloat32(0, value);
  return bits.getUint32(0);
}

/** A module: a self-test, and a policy image that they take or refuse. */
export class Module {
  constructor(module) {
    this.exports = new WebAssembly.Instance(module, {}).exports;
    this.exports.__wasm_call_ctors();
  }

  arithmeticFault() {
    const fault = this.exports.arithmetic_fault();
    return fault ? this.text(this.exports.arithmetic_fault_text(fault)) : "";
  }

  /** Opens the policy image that is played; throws Refused where it cannot be. */
  openPolicy(image) {
    const fits = image.length <= this.exports.image_capacity();
    if (fits) this.bytes(this.exports.image_buffer(), image.length).set(image);
    const reason = this.exports.open_policy(fits ? image.length : 0xffffffff);
    if (reason) throw new Refused(this.text(this.exports.policy_reason_text(reason)));
  }

  bytes(address, count) {
    return new Uint8Array(this.exports.memory.buffer, address, count);
  }
  floats(address, count) {
    return new Float32Array(this.exports.memory.buffer, address, count);
  }
  text(address) {
    const bytes = new Uint8Array(this.exports.memory.buffer, address);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}

/** One training run, and one episode that a policy plays. */
export class Core extends Module {
  #dimensions = { observations: 0, actions: 0 }; // of the policy that was opened

  /** Sets the hyperparameter with this index in the description; false where it is out of bounds. */
  setHyperparameter(index, type, value) {
    return Boolean(this.exports.set_hyperparameter(index, bitsOf(type, value)));
  }

  /** Runs a whole evaluation; returns {mean, std} of the returns. */
  evaluate() {
    this.exports.begin_evaluation();
    while (this.exports.evaluate(1000)) continue;
    return { mean: this.exports.evaluation_mean(), std: this.exports.evaluation_std() };
  }

  /** Returns why training stopped, and what to do; "" where it did not. */
  stopped() {
    const why = this.text(this.exports.stopped_text()).replace(/^training stopped: /, "");
    return why && `${why}; ${remedyOf(why)}`;
  }

  /** Returns the SHA-256 of the training state, as every device states it. */
  stateHash() {
    this.exports.state_header();
    return hexadecimal(this.bytes(this.exports.checkpoint_header() + SHA256_AT, SHA256_BYTES));
  }

  /** Returns the SHA-256 of some bytes, which the module transfers at once. */
  sha256(bytes) {
    if (bytes.length > this.exports.transfer_bytes()) throw new Refused("its header is too long");
    this.bytes(this.exports.transfer_buffer(), bytes.length).set(bytes);
    return hexadecimal(this.bytes(this.exports.sha256_of_transfer(bytes.length), SHA256_BYTES));
  }

  /** Returns /checkpoint.rltc of the present state (docs/protocol.md). */
  checkpoint() {
    this.exports.state_header();
    const file = new Uint8Array(HEADER_BYTES + this.exports.state_bytes());
    file.set(this.bytes(this.exports.checkpoint_header(), HEADER_BYTES));
    this.#pieces(file, (offset, piece) => {
      this.exports.read_state(offset, piece.length);
      piece.set(this.bytes(this.exports.transfer_buffer(), piece.length));
    });
    return file;
  }

  /** Takes a checkpoint's state. Where that is Refused, this run is damaged: ask a Core that nobody
   * needs. */
  restore(file) {
    const bytes = this.exports.state_bytes();
    this.#refuse(file.length < HEADER_BYTES ? 6 : 0);
    this.bytes(this.exports.checkpoint_header(), HEADER_BYTES).set(file.subarray(0, HEADER_BYTES));
    this.#refuse(this.exports.header_reason());
    if (file.length !== HEADER_BYTES + bytes) this.#refuse(6);
    this.#pieces(file, (offset, piece) => {
      this.bytes(this.exports.transfer_buffer(), piece.length).set(piece);
      this.exports.write_state(offset, piece.length);
    });
    this.#refuse(this.exports.checkpoint_reason());
  }

  /** Returns the policy image of the present state. */
  policy() {
    const count = this.exports.write_policy();
    return this.bytes(this.exports.image_buffer(), count).slice();
  }

  openPolicy(image) {
    super.openPolicy(image);
    const [observations, actions] = new Uint16Array(image.slice(DIMENSIONS_AT, DIMENSIONS_AT + 4).buffer);
    this.#dimensions = { observations, actions };
  }

  /** Returns the first examples of that image, run here: {observation}, the first {layers}' checksums and the
   * {action}, bits as numbers. */
  examples(limit) {
    const { observations, actions } = this.#dimensions;
    const count = Math.min(limit, this.exports.example_count());
    return Array.from({ length: count }, (_, number) => {
      const layers = this.exports.run_example(number), address = this.exports.transfer_buffer();
      const words = new Uint32Array(this.exports.memory.buffer, address, observations + layers + actions);
      return {
        observation: this.floats(address, observations).slice(),
        layers: [...words.subarray(observations, observations + layers)],
        action: [...words.subarray(observations + layers)],
      };
    });
  }

  observation(count) {
    return this.floats(this.exports.episode_observation(), count);
  }
  action(count) {
    return this.floats(this.exports.episode_action(), count);
  }

  #refuse(reason) {
    if (reason) throw new Refused(this.text(this.exports.checkpoint_reason_text(reason)));
  }

  // The state's bytes in `file`, in pieces as large as the module transfers them.
  #pieces(file, transfer) {
    const size = this.exports.transfer_bytes();
    for (let offset = HEADER_BYTES; offset < file.length; offset += size) {
      transfer(offset - HEADER_BYTES, file.subarray(offset, offset + size));
    }
  }
}
