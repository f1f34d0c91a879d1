// The policies of a board: slots, trial, confirmation and the way back, and the push of one; as
// in boards/policies.py and boards/push.py.
import { drawToken } from "./board.js";
import { contractDifference, contractOfImage, isMadeFor } from "./contract.js";
import { hexadecimal } from "./core.js";
import { FileRefused, mavlinkCrc32 } from "./files.js";
import { BoardError, LinkLost, exchange } from "./link.js";

export const CANDIDATE_PATH = "/candidate.rltp",
  CONTRACT_PATH = "/contract.bin";
export const ACTIVE = 1,
  STAGED = 2,
  TRIAL = 3; // RLT_SLOT_USE
export const LONGEST_TRIAL_S = 2147;
const NUMBER_DIGITS = 6; // of an image's SHA-256: commands name it by as many as a float holds
const PART_FLOATS = 48; // of an observation that one RLT_OBSERVATION has
const ACTION_WORDS_AT = 12,
  ACTION_FLOATS = 24,
  MAX_LAYERS = 16; // of an RLT_ACTION
const ANY_TRIAL = 0;

export const short = (sha256) => sha256.slice(0, 12);
const numberOf = (sha256) => parseInt(sha256.slice(0, NUMBER_DIGITS), 16);
const wordsOf = (bits) => bits.map((word) => word.toString(16).padStart(8, "0")).join(" ");

export async function sha256Of(bytes) {
  return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** Both slots of a board at one time. */
class Slots {
  constructor(slots, dialect) {
    this.slots = slots;
    this.dialect = dialect;
  }

  withUse(use) {
    return this.slots.find((slot) => slot.use === use);
  }
  get active() {
    return this.withUse(ACTIVE);
  }
  get trial() {
    return this.withUse(TRIAL);
  }
  get acting() {
    return this.trial ?? this.active;
  }
  get slotBytes() {
    return this.slots[0].slot_bytes;
  }
  /** Returns why a policy was dropped last; empty where none was. */
  get drop() {
    const { last_drop: drop } = this.slots[0];
    return drop ? (this.dialect.drop_reasons[drop] ?? `number ${drop}`) : "";
  }
  /** Returns name and text of the board's fault in the last image; empty where there is none. */
  get refusal() {
    const { refused_error: error, refused_reason: reason } = this.slots[0];
    for (const [number, table] of [
      [error, this.dialect.slot_errors],
      [reason, this.dialect.policy_reasons],
    ]) {
      if (number) return (table[number] ?? [`number ${number}`, `number ${number}`]).join(": ");
    }
    return "";
  }
}

/** A client that uploads policies and decides which one acts. The outcome of a command is read from
 * the slots after its acknowledgement, so that it does not matter which of the two was lost. */
export class Policies {
  constructor(board) {
    this.board = board;
    this.tick = 0;
    this.trialNumber = ANY_TRIAL; // of the trial that this has begun
  }

  slots() {
    const { connection } = this.board;
    let found = new Map();
    const request = () => {
      found = new Map(); // what arrives late belongs to another time
      connection.requestMessage("RLT_POLICY_SLOT");
    };
    const allOf = (message) => {
      const hash = (bytes) => (message.image_bytes ? hexadecimal(bytes) : "");
      found.set(message.slot, {
        ...message,
        sha256: hash(message.sha256),
        state_sha256: hash(message.state_sha256),
      });
      if (found.size < message.slots) return null;
      return new Slots(
        [...found.values()].sort((a, b) => a.slot - b.slot),
        this.board.dialect,
      );
    };
    return exchange(connection, ["RLT_POLICY_SLOT"], (asked) =>
      asked.ask(request, allOf, "its policies"),
    );
  }

  async isArmed() {
    return Boolean((await this.board.askMessage("RLT_EXECUTOR", "its executor's counts")).armed);
  }

  /** Stages an image: the board checks it, and reads it back right. */
  async upload(image, sha256, progress) {
    const { files, name } = this.board;
    try {
      await files.upload(CANDIDATE_PATH, image, progress);
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      const slots = await this.slots();
      if (!slots.trial && !(await this.isArmed())) throw error;
      throw await this.#refused("take the policy", slots, false);
    }
    const slots = await this.slots();
    const staged = slots.withUse(STAGED);
    if (!staged)
      throw new BoardError(
        `the board on ${name} refuses the policy (${slots.refusal || "it arrived damaged"})`,
      );
    if (staged.sha256 !== sha256 || (await files.crc32(CANDIDATE_PATH)) !== mavlinkCrc32(image)) {
      throw new BoardError(
        `the board on ${name} holds other bytes than it was sent: SHA-256 ` +
          `${short(staged.sha256)}…, not ${short(sha256)}…; push again`,
      );
    }
    return staged;
  }

  /** Has the staged image act, until it is confirmed or the time has passed. */
  async try(sha256, seconds) {
    this.trialNumber = drawToken();
    const isAccepted = await this.#command("MAV_CMD_RLT_TRY", "try a policy", sha256, seconds);
    const slots = await this.slots();
    if (slots.trial?.sha256 !== sha256)
      throw await this.#refused("try the policy", slots, isAccepted);
    return slots;
  }

  /** Makes the policy in trial the active one. */
  async confirm(sha256) {
    const isAccepted = await this.#command("MAV_CMD_RLT_CONFIRM", "confirm a policy", sha256);
    const slots = await this.slots();
    if (slots.trial || slots.active?.sha256 !== sha256)
      throw await this.#refused("confirm the policy", slots, isAccepted);
    this.trialNumber = ANY_TRIAL;
    return slots;
  }

  /** Ends the trial of this image, or returns from this active one to the one before. Where it does
   * not act any more, there is nothing to do. */
  async rollBack(sha256) {
    const before = await this.slots();
    if (before.acting?.sha256 !== sha256) return before;
    const isAccepted = await this.#command("MAV_CMD_RLT_ROLL_BACK", "roll back", sha256);
    const slots = await this.slots();
    if (slots.acting?.slot === before.acting.slot)
      throw await this.#refused("roll back", slots, isAccepted);
    this.trialNumber = ANY_TRIAL;
    return slots;
  }

  /** Returns the output of the acting policy's network for an observation: {action, layers}, bits as numbers;
   * nothing acts. */
  forward(observation) {
    const { connection, constants } = this.board;
    const tick = ++this.tick;
    const send = () => {
      for (let first = 0; first < observation.length; first += PART_FLOATS) {
        connection.send("RLT_OBSERVATION", {
          tick,
          first,
          dimension: observation.length,
          mode: constants.RLT_OBSERVE_FORWARD,
          values: [...observation.subarray(first, first + PART_FLOATS)],
        });
      }
    };
    const answerOf = (message) => {
      if (message.tick !== tick) return null;
      const view = new DataView(message.bytes.buffer);
      const words = (from, count) =>
        Array.from({ length: count }, (_, index) =>
          view.getUint32(ACTION_WORDS_AT + 4 * (from + index), true),
        );
      return {
        status: message.status,
        action: words(0, Math.min(message.action_dim, ACTION_FLOATS)),
        layers: words(ACTION_FLOATS, Math.min(message.layer_count, MAX_LAYERS)),
      };
    };
    return exchange(connection, ["RLT_ACTION"], (asked) => asked.ask(send, answerOf, "an action"));
  }

  #command(name, what, sha256, first = 0) {
    const parameters = { first, second: numberOf(sha256), third: this.trialNumber };
    return this.board.command(this.board.constants[name], what, parameters);
  }

  // Returns the error of a command without its effect: the board states no more than that.
  async #refused(verb, slots, isAccepted) {
    const why = (await this.isArmed())
      ? "it is armed, disarm it first"
      : slots.trial
        ? `another policy is in trial, for ${(slots.trial.trial_left_ms / 1000).toFixed(1)} s more`
        : verb === "roll back"
          ? "there is no policy before the active one"
          : slots.withUse(STAGED)
            ? "no reason is known, reset it and try again"
            : slots.drop || "another program has changed its policies meanwhile";
    return new BoardError(
      `the board on ${this.board.name} ${isAccepted ? "did not" : "refuses to"} ${verb}: ${why}`,
    );
  }
}

/** The push of one policy to one board: staged, checked, tried and compared with this machine.
 * Whatever goes wrong, the board is left with the policy that acted before; where it cannot be
 * reached any more, it returns to that by itself when the trial's time is over.
 *
 * image: its bytes; examples: of the core here, each {observation, layers, action}
 * (Core.examples). */
export class Push {
  constructor(policies, { image, sha256, examples }, seconds) {
    Object.assign(this, { policies, image, sha256, examples, seconds });
    this.isVerified = false;
    this.isConfirming = false;
  }

  /** Starts its verified trial; say(text) reports each step. Returns false where it acted
   * already. */
  async begin(say, progress) {
    const { policies, sha256, seconds } = this;
    if (!(seconds > 0 && seconds <= LONGEST_TRIAL_S))
      throw new BoardError(
        `a trial of ${seconds} s: give seconds above 0, up to ${LONGEST_TRIAL_S}`,
      );
    const slots = await this.#check();
    if (slots.active?.sha256 === sha256) {
      await this.#verify();
      say(`Active already in slot ${slots.active.slot}: ${this.verified}.`);
      return false;
    }
    const staged = await policies.upload(this.image, sha256, progress);
    say(`Staged in slot ${staged.slot}, checked by the board.`);
    await this.#orTakeBack(async () => {
      await policies.try(sha256, seconds);
      await this.#verify();
      this.isVerified = true;
    });
    return true;
  }

  /** Keeps it; only what was verified. */
  async confirm() {
    if (!this.isVerified)
      throw new BoardError("the policy was not verified in this trial: push it again");
    return await this.#orTakeBack(() => {
      this.isConfirming = true;
      return this.policies.confirm(this.sha256);
    });
  }

  get verified() {
    return `${this.examples.length} examples give this machine's bits, in every layer`;
  }

  async #check() {
    const { policies, image } = this,
      { name, identity } = policies.board;
    const contract = contractOfImage(image);
    if (!isMadeFor(contract, identity.fingerprint)) {
      const difference = contractDifference(
        contract,
        await policies.board.files.download(CONTRACT_PATH),
      );
      throw new BoardError(
        `the board on ${name} acts by the contract "${identity.experiment}", for which this ` +
          `policy is not made: ${difference}`,
      );
    }
    const slots = await policies.slots();
    if (await policies.isArmed())
      throw new BoardError(`the board on ${name} is armed: disarm it, then push again`);
    if (slots.trial) {
      throw new BoardError(
        `the board on ${name} tries another policy, for ` +
          `${(slots.trial.trial_left_ms / 1000).toFixed(1)} s more: roll that back, or wait`,
      );
    }
    if (image.length > slots.slotBytes) {
      throw new BoardError(
        `the policy has ${image.length} bytes, a slot of the board on ${name} takes ` +
          `${slots.slotBytes}: build its firmware with a larger RLT_POLICY_SLOT_BYTES, or train ` +
          "smaller networks",
      );
    }
    return slots;
  }

  // The board's network gives this machine's bits for the image's examples.
  async #verify() {
    const { name } = this.policies.board;
    for (const [index, example] of this.examples.entries()) {
      const difference = differenceOf(example, await this.policies.forward(example.observation));
      if (!difference) continue;
      const slots = await this.policies.slots();
      if (slots.acting?.sha256 !== this.sha256) {
        throw new BoardError(
          `the board on ${name} dropped the policy before it was verified: ` +
            `${slots.drop || "no reason is known"}; give a longer trial`,
        );
      }
      throw new BoardError(
        `the board on ${name} computes other bits than this machine: example ${index}, ` +
          `${difference}`,
      );
    }
  }

  // Ends the trial where the work fails; what comes of that is added to the error.
  async #orTakeBack(work) {
    try {
      return await work();
    } catch (error) {
      this.isVerified = false;
      error.message += `; ${await this.#takeBack()}`;
      throw error;
    }
  }

  async #takeBack() {
    try {
      const { active } = await this.policies.rollBack(this.sha256);
      return active ? `${short(active.sha256)} acts` : "no policy acts";
    } catch (failure) {
      if (!(failure instanceof LinkLost)) return `and ${failure.message}`;
      if (this.isConfirming)
        return "whether it was confirmed is not known: connect again, the slots say it";
      return `the board drops it within ${this.seconds} s`;
    }
  }
}

function differenceOf(example, { action, layers, status }) {
  const expected = example.layers;
  const carried = Math.min(layers.length, expected.length);
  for (let layer = 0; layer < carried; layer++) {
    if (layers[layer] !== expected[layer]) {
      return `layer ${layer} has the checksum ${wordsOf([layers[layer]])}, here ` +
        `${wordsOf([expected[layer]])}`;
    }
  }
  if (layers.length < Math.min(expected.length, MAX_LAYERS))
    return `it has ${layers.length} layers, here ${expected.length} (status ${status})`;
  if (wordsOf(action) !== wordsOf(example.action))
    return `its action is ${wordsOf(action)}, here ${wordsOf(example.action)}`;
  return "";
}
