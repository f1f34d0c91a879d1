// A board of docs/protocol.md: its identity, its hyperparameters and its training, as in
// boards/session.py and boards/training.py.
import { bitsOf } from "./core.js";
import { Files } from "./files.js";
import { BoardError, Connection, LinkLost, TIMES, exchange } from "./link.js";
import { FINISHED, PAUSED, TRAINING, Watch, resultOf } from "./watch.js";

const CONNECT_LIMIT_MS = 10_000,
  IDENTITY_MS = 500;
const HEARTBEAT_LIMIT_MS = 3000; // any node of MAVLink sends one a second
const idOf = (name) => name.slice(0, 16); // what a PARAM message has of a hyperparameter's name
const REFUSALS = 2; // answers with another value before a value counts as refused
const MAX_TOKEN = 0xffffff; // the largest that a float holds

/** Returns a random number from 1 on that a float holds. */
export const drawToken = () => 1 + (crypto.getRandomValues(new Uint32Array(1))[0] % MAX_TOKEN);
/** Returns a word of a command, where it can be pasted into a shell as it is. */
const isWord = (text) => /^[\w.-]+$/.test(text);

function valueOf(type, bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, bits);
  return type === "U32" ? bits : view.getFloat32(0);
}

export class Board {
  constructor(connection) {
    this.connection = connection;
    this.dialect = connection.dialect;
    this.constants = connection.dialect.constants;
    this.name = connection.name;
    this.files = new Files(connection);
    this.best = null; // {mean, step, image} of the best evaluation, where the board rests for it
    this.isPausing = false;
  }

  /** Returns the board that answers on a link; where none does, closes the link and throws. */
  static async connect(link, dialect, limitMs = CONNECT_LIMIT_MS) {
    const connection = new Connection(link, dialect);
    try {
      const board = new Board(connection);
      await board.#find(limitMs);
      return board;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  close() {
    return this.connection.close();
  }

  // ---- Identity ---------------------------------------------------------------------------------

  async #find(limitMs) {
    const { connection } = this;
    const end = performance.now() + limitMs;
    await exchange(connection, ["RLT_IDENTITY"], async (asked) => {
      while (performance.now() < end) {
        const request = () => connection.requestMessage("RLT_IDENTITY");
        const identity = await asked.attempt(request, (message) => message, IDENTITY_MS);
        if (!identity) continue;
        this.#take(identity);
        connection.target = { system: identity.system, component: identity.component };
        return;
      }
      throw this.#noAnswer(limitMs);
    });
    const { protocol_version: theirs, board, experiment } = this.identity;
    if (theirs === this.dialect.version) return;
    const command = [board, experiment].every(isWord)
      ? ` with \`rlt flash ${board} ${experiment}\``
      : "";
    throw new BoardError(
      `the board on ${this.name} speaks version ${theirs} of the protocol, this page version ` +
        `${this.dialect.version}: flash it again${command}`,
    );
  }

  /** Reads its identity, with its present state. */
  async askIdentity() {
    return this.#take(await this.askMessage("RLT_IDENTITY", "its identity"));
  }

  askMessage(name, what) {
    const request = () => this.connection.requestMessage(name);
    return exchange(this.connection, [name], (asked) =>
      asked.ask(request, (message) => message, what),
    );
  }

  #take(message) {
    this.identity = { ...message, program: message.program || "train" };
    return this.identity;
  }

  #noAnswer(limitMs) {
    const { connection, name } = this,
      seconds = limitMs / 1000;
    if (connection.decoder.messagesReceived) {
      if (connection.silenceMs > HEARTBEAT_LIMIT_MS) {
        return new LinkLost(
          `the board on ${name} has stopped answering: check the cable or reset the board`,
        );
      }
      return new BoardError(
        `the device on ${name} speaks MAVLink but is not one of our boards: flash it (\`rlt ` +
          `flash --help\`), or choose another port`,
      );
    }
    if (connection.bytesReceived) {
      return new BoardError(
        `the board on ${name} runs other firmware (${connection.bytesReceived} bytes came, no ` +
          `MAVLink): flash it (\`rlt flash --help\`), or choose another port`,
      );
    }
    return new BoardError(
      `no board answers on ${name} within ${seconds} s: check that it is powered and flashed ` +
        `(\`rlt flash --help\`), or choose another port`,
    );
  }

  // ---- Commands ---------------------------------------------------------------------------------

  /** Sends a command until it is acknowledged; whether the board accepts it. onAccepted() is called
   * before what comes behind the acknowledgement. */
  command(number, what, parameters = {}, onAccepted = () => {}) {
    return exchange(this.connection, ["COMMAND_ACK"], (asked) =>
      this.#command(asked, number, what, parameters, onAccepted),
    );
  }

  #command(asked, number, what, parameters, onAccepted) {
    const send = () =>
      this.connection.sendCommand(number, { ...parameters, confirmation: Math.min(asked.sent - 1, 255) });
    const answerOf = ({ command, result }) => {
      if (command !== number) return null;
      const isAccepted = result === this.constants.MAV_RESULT_ACCEPTED;
      if (isAccepted) onAccepted();
      return isAccepted;
    };
    return asked.ask(send, answerOf, `the command to ${what}`);
  }

  // ---- Hyperparameters --------------------------------------------------------------------------

  /** Reads the values of the description's hyperparameters, by name. */
  async readParameters(parameters) {
    const values = {};
    for (const { name, type } of parameters) {
      const request = () =>
        this.connection.send("PARAM_REQUEST_READ", { param_id: idOf(name), param_index: -1 });
      const bits = await exchange(this.connection, ["PARAM_VALUE"], (asked) =>
        asked.ask(request, (message) => this.#bitsOf(message, name), `hyperparameter ${name}`),
      );
      values[name] = valueOf(type, bits);
    }
    return values;
  }

  /** Sets hyperparameters, and checks that the board took each of them, bit by bit. */
  async setParameters(parameters, values) {
    for (const { name, type } of parameters) {
      if (name in values) await this.#setParameter(name, type, values[name]);
    }
  }

  // PARAM_VALUE does not say whose request it answers: so another value is a refusal only with the
  // board's text, or when it comes again after a repeated request.
  #setParameter(name, type, value) {
    const bits = bitsOf(type, value);
    const payload = this.dialect.payload("PARAM_SET", {
      target_system: this.connection.target.system,
      target_component: this.connection.target.component,
      param_id: idOf(name),
      param_type:
        this.constants[type === "U32" ? "MAV_PARAM_TYPE_UINT32" : "MAV_PARAM_TYPE_REAL32"],
    });
    new DataView(payload.buffer).setUint32(0, bits, true); // as they are: a float would change NaNs
    return exchange(this.connection, ["PARAM_VALUE"], async (asked) => {
      const end = performance.now() + TIMES.limit;
      for (let refusals = 0, stated = 0; performance.now() < end; stated = 0) {
        const isTaken = await asked.attempt(
          () => this.connection.sendPayload("PARAM_SET", payload),
          (message) => {
            const answer = this.#bitsOf(message, name);
            if (answer === null) return null;
            stated = 1;
            return (
              answer === bits ||
              (asked.errorText.startsWith("hyperparameter refused") ? false : null)
            );
          },
        );
        if (isTaken) return;
        refusals += stated;
        if (refusals < REFUSALS) continue;
        throw new BoardError(
          `the board on ${this.name} refuses ${name}=${value}: choose another ` +
            `value${asked.because}`,
        );
      }
      throw asked.unanswered(`hyperparameter ${name}`);
    });
  }

  #bitsOf(message, name) {
    if (message.param_id !== idOf(name)) return null;
    return new DataView(message.bytes.buffer).getUint32(0, true);
  }

  // ---- Training ---------------------------------------------------------------------------------

  /** Begins a new run; take(message) gets its reports. Resolves to {result}, the promise of how it
   * ends (see watch). */
  start(take) {
    this.best = null;
    return this.#lead("MAV_CMD_RLT_START", "start", take);
  }

  /** Resumes a run that is at rest. */
  resume(take) {
    return this.#lead("MAV_CMD_RLT_RESUME", "resume", take);
  }

  /** Resumes from a rest; onAccepted() as for command(). */
  resumeFromRest(onAccepted) {
    return this.#train("MAV_CMD_RLT_RESUME", "resume", onAccepted);
  }

  /** Asks for a pause; the watcher receives the result. */
  async pause() {
    this.isPausing = true;
    await this.#obey("MAV_CMD_RLT_PAUSE", "pause", [PAUSED, FINISHED]);
  }

  /** Returns an RLT_STATE in words. */
  stateName(state) {
    return this.dialect.states[state] ?? `in state ${state}`;
  }

  /** Reads RLT_RESULT of a board that is paused or finished. */
  async result() {
    return resultOf(await this.askMessage("RLT_RESULT", "its result"));
  }

  /** Puts a checkpoint there, which the board checks and is then paused; a BoardError where it is
   * refused. */
  putCheckpoint(content, progress) {
    this.best = null;
    return exchange(this.connection, [], async (asked) => {
      await this.files.upload("/checkpoint.rltc", content, progress);
      const { state } = await this.askIdentity();
      if (state === PAUSED || state === FINISHED) return;
      throw new BoardError(
        `the board on ${this.name} refuses the checkpoint: send it again${asked.because}`,
      );
    });
  }

  async #lead(command, verb, take) {
    const watch = new Watch(this, take);
    this.isPausing = false;
    try {
      await this.#train(command, verb, () => watch.begin());
    } catch (error) {
      watch.end();
      throw error;
    }
    watch.begin();
    return { result: watch.result };
  }

  /** Returns the promise of the result of a run that trains already. */
  watch(take) {
    const watch = new Watch(this, take);
    watch.begin();
    return watch.result;
  }

  // A board that keeps no best policy rests after an evaluation above the best so far.
  #train(command, verb, onAccepted) {
    const parameters = { first: drawToken(), second: 1, third: this.best?.mean ?? -Infinity };
    return this.#obey(command, verb, [TRAINING, FINISHED], parameters, onAccepted);
  }

  #obey(name, verb, states, parameters, onAccepted) {
    return exchange(this.connection, ["COMMAND_ACK"], async (asked) => {
      if (
        await this.#command(asked, this.constants[name], verb, parameters, onAccepted ?? (() => {}))
      )
        return;
      const { state } = await this.askIdentity();
      // Carried out, and its acknowledgement lost.
      if (asked.sent > 1 && states.includes(state)) return;
      throw new BoardError(
        `the board on ${this.name} is ${this.stateName(state)} and refuses to ${verb}: ` +
          `reset it, then try again${asked.because}`,
      );
    });
  }
}
