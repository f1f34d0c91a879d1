// The reports of a board that trains, until it is at rest, as in boards/training.py.
import { hexadecimal, remedyOf } from "./core.js";
import { BoardError, LinkLost, sleep } from "./link.js";

const QUIET_MS = 2000; // without a report: ask how the board stands
const WORST_CRITICAL = 2,
  WORST_ERROR = 3; // MAV_SEVERITY
export const IDLE = 0,
  TRAINING = 1,
  PAUSED = 2,
  FINISHED = 3,
  FAULT = 4; // RLT_STATE

export const resultOf = (message) => ({ ...message, hash: hexadecimal(message.state_sha256) });

/** Reports until training is at rest. `result` is then RLT_RESULT; it fails where the board's
 * training stops, or where the board restarts, falls silent or is lost. A rest for the best policy
 * is none of them: the policy is fetched, and the run resumes. */
export class Watch {
  constructor(board, take) {
    Object.assign(this, {
      board,
      take,
      isBegun: false,
      isEnded: false,
      isKeeping: false, // the best policy
      evaluation: null, // the last one
      faultText: "",
      newest: new Map(),
    });
    const kinds = ["RLT_PROGRESS", "RLT_EVALUATION", "RLT_RESULT", "RLT_IDENTITY", "STATUSTEXT"];
    this.stop = board.connection.listen(kinds, (message) => this.isBegun && this.#see(message));
    this.result = new Promise((resolve, reject) => Object.assign(this, { resolve, reject }));
    this.result.catch(() => {}); // whoever waits for it receives it
  }

  begin() {
    if (this.isBegun) return;
    this.isBegun = true;
    this.board.connection.lastHeard = this.lastSign = performance.now();
    this.#attend();
  }

  end() {
    this.isEnded = true;
    this.stop();
  }

  #settle(settle) {
    if (this.isEnded) return;
    this.end();
    settle();
  }

  async #attend() {
    const { connection } = this.board;
    try {
      while (!this.isEnded) {
        await connection.within(sleep(QUIET_MS / 4), QUIET_MS);
        if (this.isEnded) return;
        connection.checkSilence();
        if (!this.isKeeping && performance.now() - this.lastSign > QUIET_MS) this.#ask();
      }
    } catch (error) {
      this.#settle(() => this.reject(error));
    }
  }

  #ask() {
    this.lastSign = performance.now();
    if (!this.board.connection.failure) this.board.connection.requestMessage("RLT_IDENTITY");
  }

  #see(message) {
    const { kind } = message;
    if (kind === "STATUSTEXT") {
      if (message.severity <= WORST_CRITICAL) {
        this.faultText = (message.chunk_seq ? this.faultText : "") + message.text;
      }
      if (message.severity <= WORST_ERROR) this.#ask();
      return;
    }
    const isResult = kind === "RLT_RESULT";
    if (this.isKeeping && (isResult || kind === "RLT_IDENTITY")) return; // from before it resumed
    if (kind === "RLT_IDENTITY") return this.#judge(message.state);
    this.lastSign = performance.now();
    if (isResult) return this.#rest(resultOf(message));
    // One that came before, or behind a later one, is dropped.
    const step = this.newest.get(kind) ?? -1;
    if (message.step <= step) return;
    this.newest.set(kind, message.step);
    if (kind === "RLT_EVALUATION") this.evaluation = message;
    this.take(message);
  }

  async #rest(result) {
    const { board } = this;
    try {
      if (result.is_best) {
        this.isKeeping = true;
        await this.#keep(result);
        if (result.state === PAUSED && !board.isPausing && !this.isEnded) {
          return await board.resumeFromRest(() => this.#wake());
        }
      }
      this.#settle(() => this.resolve(result));
    } catch (error) {
      this.#settle(() => this.reject(error));
    }
  }

  // An evaluation whose report was lost does not count.
  async #keep({ step }) {
    if (this.evaluation?.step !== step) return;
    const image = await this.board.files.download("/policy.rltp");
    this.board.best = { step, mean: this.evaluation.return_mean, image };
  }

  #wake() {
    this.isKeeping = false;
    this.lastSign = performance.now();
  }

  #judge(state) {
    const { name, connection } = this.board;
    if (state === FAULT) {
      const why = this.faultText || "a value is not finite";
      this.#settle(() =>
        this.reject(
          new BoardError(`training stopped on ${name}: ${why}; ${remedyOf(why)}`),
        ),
      );
    } else if (state === IDLE) {
      this.#settle(() =>
        this.reject(
          new LinkLost(`the board on ${name} restarted and lost its training state: start again`),
        ),
      );
    } else if (state !== TRAINING) connection.requestMessage("RLT_RESULT");
  }
}
