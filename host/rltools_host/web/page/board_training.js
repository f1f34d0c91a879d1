// Training on a board, as the panel shows it: hyperparameters, a run whose reports go into the
// page's curve and fields, and the files that it leaves.
import { Core } from "./core.js";
import { BoardError } from "./link.js";
import { short } from "./policies.js";
import { FINISHED, IDLE, PAUSED, TRAINING } from "./watch.js";

const get = (id) => document.getElementById(`board-${id}`);
const REPORT_MS = 100; // reports that come faster are shown together
const hexadecimal = (number) => number.toString(16).padStart(8, "0");
const counted = (step) => step.toLocaleString("en");

export class TrainingPart {
  constructor(panel) {
    this.panel = panel;
    this.forget();
    const { page } = panel;
    const setting = "Setting the hyperparameters.";
    panel.onClick("start", setting, () => this.#start());
    panel.onClick("set", setting, () => this.#setParameters());
    panel.onClick("read", "Reading the hyperparameters.", () => this.#readParameters());
    panel.onClick("pause", "Asking for a pause.", () => this.#pause());
    panel.onClick("resume", "Resuming it.", () => this.#resume());
    panel.onClick("send", "Sending this page's run.", () => this.#sendRun());
    panel.onClick("fetch-checkpoint", "Fetching the checkpoint.", () => this.#fetchCheckpoint());
    panel.onClick("fetch-policy", "Fetching the policy.", () =>
      panel.fetchPolicy("/policy.rltp", `${page.experiment().description.name}.rltp`),
    );
    panel.onClick("fetch-best", "Fetching the policy of the best evaluation.", () => {
      const name = `${page.experiment().description.name}-best.rltp`;
      return panel.fetchPolicy("/best.rltp", name, panel.board.best?.image);
    });
  }

  /** Clears the panel: the board is gone. */
  forget() {
    this.state = IDLE;
    this.isFollowing = false; // a run of the board
    this.values = null; // of that run
    this.newest = null; // report that is not shown yet
    this.last = null; // step and counter of the report before
  }

  /** Shows a board that was connected. */
  async begin() {
    this.state = this.panel.board.identity.state;
    if (this.state === TRAINING && !this.#mismatch()) await this.#join();
  }

  experimentChanged() {
    if (this.state !== TRAINING || this.#mismatch()) return;
    if (this.isFollowing) this.panel.page.begin(this.values);
    else this.panel.run("Asking how the board stands.", () => this.#join());
  }

  show() {
    const { state } = this;
    const fault = this.#mismatch();
    get("mismatch").textContent = fault;
    const isAtRest = !fault && (state === PAUSED || state === FINISHED);
    this.panel.enable({
      start: !fault && state !== TRAINING,
      pause: state === TRAINING,
      resume: !fault && state === PAUSED,
      read: !fault,
      set: !fault && state !== TRAINING,
      send: !fault && state !== TRAINING,
      "fetch-checkpoint": isAtRest,
      "fetch-policy": isAtRest,
      "fetch-best": isAtRest,
    });
  }

  /** Returns why the board cannot be commanded from here; empty where it can. */
  #mismatch() {
    const { board, page } = this.panel;
    const { description } = page.experiment() ?? {};
    if (board?.identity.program !== "train" || !description) return "";
    const { experiment, fingerprint } = board.identity;
    if (experiment !== description.name) {
      return (
        `The board on ${board.name} runs experiment "${experiment}", not "${description.name}": ` +
        "choose that one at the top, or write a page that has it with rlt web."
      );
    }
    if (fingerprint !== description.fingerprint) {
      return (
        `The board on ${board.name} runs another version of "${experiment}" (fingerprint ` +
        `${hexadecimal(fingerprint)}, here ${hexadecimal(description.fingerprint)}): flash it ` +
        "again, or open the page of its version."
      );
    }
    return "";
  }

  // ---- Hyperparameters --------------------------------------------------------------------------

  get #parameters() {
    return this.panel.page.experiment().description.hyperparameters;
  }

  async #readParameters() {
    const settings = this.panel.page.settings();
    const values = await this.panel.board.readParameters(this.#parameters);
    const wrong = Object.keys(values).filter((name) => !settings.set(name, values[name]));
    this.panel.page.fieldsSet();
    if (wrong.length) {
      throw new BoardError(`the board's ${wrong.join(", ")} cannot be set here; the rest is`);
    }
    this.panel.say("The fields have the board's hyperparameters.");
  }

  async #setParameters() {
    const values = this.panel.page.settings().values();
    if (!values) throw new BoardError("a hyperparameter is not within its bounds");
    await this.panel.board.setParameters(this.#parameters, values);
    this.panel.say("The board has the hyperparameters of the fields.");
    return values;
  }

  // ---- A run ------------------------------------------------------------------------------------

  async #start() {
    this.values = await this.#setParameters();
    this.panel.page.begin(this.values);
    this.#follow((await this.panel.board.start((message) => this.#report(message))).result);
  }

  // Who follows the run hears the result; another experiment's is not followed.
  async #pause() {
    const { board } = this.panel;
    await board.pause();
    if (this.isFollowing) return;
    const { state, step } = await board.result();
    this.state = state;
    this.panel.say(`The board is paused at step ${counted(step)}.`);
  }

  async #resume() {
    this.values = await this.panel.board.readParameters(this.#parameters); // may have been set since
    this.panel.page.resumed(this.values);
    this.#follow((await this.panel.board.resume((message) => this.#report(message))).result);
  }

  // Follows a run that began before the page was connected.
  async #join() {
    this.values = await this.panel.board.readParameters(this.#parameters);
    this.panel.page.begin(this.values);
    this.#follow(this.panel.board.watch((message) => this.#report(message)));
  }

  async #follow(result) {
    const { panel } = this,
      { board } = panel;
    this.state = TRAINING;
    this.isFollowing = true;
    panel.say("The board trains.");
    try {
      const { state, step, hash } = await result;
      if (panel.board !== board) return;
      this.#showNewest();
      this.state = state;
      if (!this.#mismatch()) {
        panel.page.state(step, hash, `${board.identity.board} on ${board.name}`, this.values);
      }
      const how =
        state === FINISHED
          ? `has finished ${counted(step)} steps`
          : `is paused at step ${counted(step)}`;
      panel.say(`The board ${how}: state ${short(hash)}…`);
    } catch (error) {
      if (panel.board !== board) return;
      panel.sayError(error);
      if (!board.connection.failure) {
        this.state = (await board.askIdentity().catch(() => ({ state: IDLE }))).state;
      }
    }
    this.isFollowing = false;
    this.last = null;
    panel.show();
  }

  #report(message) {
    if (this.#mismatch()) return; // another experiment is shown meanwhile
    const { kind, step, counter } = message;
    if (kind === "RLT_EVALUATION") {
      const { return_mean: mean, return_std: std } = message;
      return this.panel.page.evaluation({ step, mean, std });
    }
    const last = this.last ?? message;
    const isTime = this.panel.board.identity.counter === 0; // else guest instructions
    const us = isTime ? counter - last.counter : 0;
    this.last = message;
    if (!this.newest) setTimeout(() => this.#showNewest(), REPORT_MS);
    const rate = us > 0 ? ((step - last.step) / us) * 1e6 : NaN;
    this.newest = { ...message, lastReturn: message.last_return, rate };
  }

  #showNewest() {
    const report = this.newest;
    this.newest = null;
    if (report && this.panel.board && !this.#mismatch()) this.panel.page.progress(report);
  }

  // The run of this page becomes the board's: all checks of a checkpoint are made there, and its
  // hash must then be the one that is here.
  async #sendRun() {
    const { board, page } = this.panel;
    const run = await page.run();
    if (!run) throw new BoardError("this page trains: pause it, then send its run");
    const { step, hash, file, values } = run;
    await board.setParameters(this.#parameters, values);
    try {
      await board.putCheckpoint(file, (done, all) => this.panel.showTransfer(done, all));
    } finally {
      if (!board.connection.failure) this.state = (await board.askIdentity()).state;
    }
    const there = await board.result();
    if (there.hash !== hash || there.step !== step) {
      throw new BoardError(
        `the board on ${board.name} holds step ${counted(there.step)} in state ` +
          `${short(there.hash)}… instead of step ${counted(step)} in ${short(hash)}…: send it again`,
      );
    }
    page.boardContinues(values);
    page.state(step, hash, `${board.identity.board} on ${board.name}`, values);
    this.panel.say(`The board has the run at step ${counted(step)}: state ${short(hash)}… verified.`);
  }

  async #fetchCheckpoint() {
    const { board, page } = this.panel;
    const { compiled, description } = page.experiment();
    const { hash, step } = await board.result();
    const bytes = await this.panel.download("/checkpoint.rltc");
    const core = new Core(compiled);
    core.restore(bytes); // all checks of a board, the state's SHA-256 included
    if (core.stateHash() !== hash) {
      throw new BoardError(
        `the checkpoint's state is ${short(core.stateHash())}…, the board states ` +
          `${short(hash)}…: fetch it again`,
      );
    }
    this.panel.keep(
      bytes,
      `${description.name}-${step}.rltc`,
      `The checkpoint of step ${counted(step)} is here: state ${short(hash)}… verified.`,
    );
  }
}
