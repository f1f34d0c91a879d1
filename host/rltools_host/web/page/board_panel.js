// The part of the page that is about a board at a serial port: who it is, its training, its policies.
// What a board says becomes text, never HTML.
import { Board, FAULT, FINISHED, IDLE, PAUSED, TRAINING } from "./board.js";
import { Core, Refused } from "./core.js";
import { FILE_NOT_FOUND, FileRefused } from "./files.js";
import { Dialect } from "./frames.js";
import { BoardError, openSerial } from "./link.js";
import { Policies, Push, sha256Of, short } from "./policies.js";

const get = (id) => document.getElementById(`board-${id}`);
const VERIFIED_EXAMPLES = 64; // at most; this library writes 8 into an image
const POLL_MS = 1000; // of the slots, during a trial
const HEXADECIMAL = (number) => number.toString(16).padStart(8, "0");
const REPORT_MS = 100; // reports that come faster are shown together

/** A sentence of a clause that begins and ends without one's signs. */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** `page` is what this asks of the rest of it (main.js): experiment() gives {description, compiled},
 * settings() its fields, played() the policy that is played as {image, name}; begin(), progress(),
 * evaluation() and state() show a run; open(file) and download(bytes, name). */
export class BoardPanel {
  constructor(page) {
    this.page = page;
    this.board = null;
    this.busy = false;
    this.fetched = null; // {bytes, name}
    this.isFollowing = false; // a run of the board
    this.report = null; // the newest that is not shown yet
    const click = (id, what, work) => get(id).addEventListener("click", () => this.#do(what, work));
    click("disconnect", "Disconnecting.", () => this.#disconnect());
    click("start", "Setting the hyperparameters.", () => this.#start());
    click("pause", "Asking for a pause.", () => this.board.pause());
    click("resume", "Asking it to go on.", () => this.#resume());
    click("read", "Reading the hyperparameters.", () => this.#readParameters());
    click("set", "Setting the hyperparameters.", () => this.#setParameters());
    click("fetch-checkpoint", "Fetching the checkpoint.", () => this.#fetchCheckpoint());
    click("fetch-policy", "Fetching the policy.", () => this.#fetchPolicy("/policy.rltp"));
    click("fetch-best", "Fetching the policy of the best evaluation.", () => this.#fetchPolicy("/best.rltp"));
    click("fetch-active", "Fetching the active policy.", () => this.#fetchPolicy("/policy.rltp"));
    click("push", "Checking the policy here.", () => this.#push());
    click("confirm", "Confirming.", () => this.#confirm());
    click("roll-back", "Rolling back.", () => this.#rollBack());
    get("save").addEventListener("click", () => page.download(this.fetched.bytes, this.fetched.name));
    get("open").addEventListener("click", () => page.open(new File([this.fetched.bytes], this.fetched.name)));
  }

  /** Asks for a port, and connects to the board there. */
  connect() {
    return this.#do("Choose the board's port.", () => this.#connect());
  }

  /** The page shows another experiment now. */
  experimentChanged() {
    if (!this.board) return;
    this.#show();
    if (this.state !== TRAINING || this.#mismatch()) return;
    if (this.isFollowing) this.page.begin(this.values.steps);
    else this.#do("Asking how the board stands.", () => this.#join());
  }

  // ---- What is said, and what can be pressed -----------------------------------------------------

  #say(text, isBad = false) {
    get("status").textContent = text;
    get("status").classList.toggle("bad", isBad);
  }

  // One thing at a time; what goes wrong is said.
  async #do(what, work) {
    if (this.busy) return;
    const focused = document.activeElement;
    this.busy = true;
    this.#say(what);
    this.#show();
    try {
      await work();
    } catch (error) {
      if (!(error instanceof BoardError) && !(error instanceof Refused)) throw error;
      this.#say(sentence(error.message), true);
    } finally {
      this.busy = false;
      get("transfer").hidden = true;
      if (this.board?.connection.failure) this.#forget();
      this.#show();
      if (focused.hidden) get(this.board ? "disconnect" : "connect").focus();
    }
  }

  #progress(done, all) {
    get("transfer").hidden = false;
    get("transfer").value = done / all;
  }

  #show() {
    const { board, busy } = this, { identity } = board ?? {};
    get("connect").disabled = busy;
    get("connect").hidden = Boolean(board);
    get("disconnect").hidden = !board;
    get("disconnect").disabled = busy;
    get("train").hidden = identity?.program !== "train";
    get("policies").hidden = identity?.program !== "infer";
    get("fetched").hidden = !this.fetched;
    get("identity").replaceChildren(...(board ? this.#identityRows() : []));
    const fault = board ? this.#mismatch() : "";
    get("mismatch").textContent = fault;
    const { state } = this;
    const isAtRest = state === PAUSED || state === FINISHED;
    const isFit = !busy && !fault;
    const enabled = {
      start: isFit && state !== TRAINING, pause: !busy && state === TRAINING, resume: isFit && state === PAUSED,
      read: isFit, set: isFit && state !== TRAINING,
      "fetch-checkpoint": isFit && isAtRest, "fetch-policy": isFit && isAtRest, "fetch-best": isFit && isAtRest,
      push: !busy && !this.slots?.trial && Boolean(this.page.played()),
      confirm: !busy && Boolean(this.push?.isVerified) && this.slots?.trial?.sha256 === this.push.sha256,
      "roll-back": !busy && Boolean(this.slots?.acting), "fetch-active": !busy && Boolean(this.slots?.active),
    };
    for (const [id, isEnabled] of Object.entries(enabled)) get(id).disabled = !isEnabled;
    get("slots").replaceChildren(...(this.slots?.slots ?? []).map((slot) => this.#slotRow(slot)));
  }

  #identityRows() {
    const { board, experiment, program, device, revision, fingerprint, unique_id: id } = this.board.identity;
    const rows = {
      board, [program === "infer" ? "contract" : "experiment"]: experiment, device, revision: revision || "–",
      fingerprint: HEXADECIMAL(fingerprint),
    };
    if (id.some(Boolean)) rows.serial = id.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (program === "train") rows.state = this.board.dialect.states[this.state] ?? String(this.state);
    const { messagesLost } = this.board.connection.decoder;
    if (messagesLost) rows["messages lost"] = messagesLost;
    return Object.entries(rows).map(([name, value]) => {
      const row = document.createElement("div");
      const element = (tag, textContent) => Object.assign(document.createElement(tag), { textContent });
      row.append(element("dt", name), element("dd", value));
      return row;
    });
  }

  #slotRow(slot) {
    const line = document.createElement("tr");
    const use = this.board.dialect.slot_uses[slot.use] ?? String(slot.use);
    const left = this.slots.trial === slot ? `, ${(slot.trial_left_ms / 1000).toFixed(0)} s left` : "";
    const has = slot.image_bytes > 0;
    const cells = [slot.slot, use + left, has ? slot.experiment : "–", has ? slot.step.toLocaleString("en") : "–", has ? short(slot.sha256) : "–"];
    for (const textContent of cells) line.append(Object.assign(document.createElement("td"), { textContent }));
    return line;
  }

  /** Why a board that trains cannot be commanded from here; empty where it can. */
  #mismatch() {
    const { identity, name } = this.board, { description } = this.page.experiment() ?? {};
    if (identity.program !== "train" || !description) return "";
    if (identity.experiment !== description.name) {
      return `The board on ${name} runs experiment "${identity.experiment}", not "${description.name}": choose that one at the top, or write a page that has it with rlt web.`;
    }
    if (identity.fingerprint !== description.fingerprint) {
      return `The board on ${name} runs another version of "${identity.experiment}" (fingerprint ${HEXADECIMAL(identity.fingerprint)}, here ${HEXADECIMAL(description.fingerprint)}): flash it again, or open the page of its version.`;
    }
    return "";
  }

  // ---- Connection --------------------------------------------------------------------------------

  async #connect() {
    let port;
    try {
      port = await navigator.serial.requestPort();
    } catch (error) {
      const text = error.name === "SecurityError" ? "The browser allows the question for a port only just after a press: press again." : "No port was chosen.";
      return this.#say(text);
    }
    this.#say("Asking the board who it is.");
    this.dialect ??= new Dialect(await (await fetch("dialect.json")).json());
    const board = await Board.connect(await openSerial(port), this.dialect);
    this.board = board;
    this.state = board.identity.state;
    this.slots = this.push = null;
    this.policies = new Policies(board);
    board.connection.onLost = () => this.#lost(board);
    this.#say(`Connected to ${board.identity.board} on ${board.name}.`);
    if (board.identity.program === "infer") this.slots = await this.policies.slots();
    else if (this.state === TRAINING && !this.#mismatch()) await this.#join();
  }

  async #disconnect() {
    if (this.slots?.trial && this.push?.isVerified) await this.policies.rollBack(this.push.sha256);
    const { board } = this;
    this.#forget();
    await board.close();
    this.#say("Not connected.");
  }

  // The cable is pulled while nothing is asked.
  #lost(board) {
    if (this.board !== board || this.busy) return;
    const wasInTrial = this.slots?.trial;
    this.#forget();
    const trial = wasInTrial ? " It drops the policy in trial when its time is over." : "";
    this.#say(sentence(board.connection.failure.message) + trial, true);
    this.#show();
  }

  #forget() {
    const { board } = this;
    this.board = this.slots = this.push = this.report = null;
    this.isFollowing = false;
    if (board) board.connection.onLost = () => {};
    if (board) board.close();
  }

  // ---- Training ----------------------------------------------------------------------------------

  get #parameters() {
    return this.page.experiment().description.hyperparameters;
  }

  async #start() {
    await this.#setParameters();
    this.values = this.page.settings().values();
    this.page.begin(this.values.steps);
    this.last = null;
    this.#follow((await this.board.start((message) => this.#report(message))).result);
  }

  async #resume() {
    this.values ??= await this.board.readParameters(this.#parameters);
    this.last = null;
    this.#follow((await this.board.resume((message) => this.#report(message))).result);
  }

  // A run that was begun before the page was connected.
  async #join() {
    this.values = await this.board.readParameters(this.#parameters);
    this.page.begin(this.values.steps);
    this.#follow(this.board.watch((message) => this.#report(message)));
  }

  async #follow(result) {
    const { board } = this;
    this.state = TRAINING;
    this.isFollowing = true;
    this.#say("The board trains.");
    try {
      const { state, step, hash } = await result;
      if (this.board !== board) return;
      this.#showReport();
      this.state = state;
      if (!this.#mismatch()) this.page.state(step, hash, `${board.identity.board} on ${board.name}`, this.values);
      this.#say(state === FINISHED ? `The board has finished ${step.toLocaleString("en")} steps: state ${short(hash)}…` : `The board is paused at step ${step.toLocaleString("en")}: state ${short(hash)}…`);
    } catch (error) {
      if (this.board !== board) return;
      this.#say(sentence(error.message), true);
      this.state = FAULT;
      if (!board.connection.failure) this.state = (await board.askIdentity().catch(() => ({ state: IDLE }))).state;
    }
    this.isFollowing = false;
    this.#show();
  }

  #report(message) {
    if (this.#mismatch()) return; // another experiment is shown meanwhile
    const { kind, step, counter } = message;
    if (kind === "RLT_EVALUATION") return this.page.evaluation({ step, mean: message.return_mean, std: message.return_std });
    const last = this.last ?? { step, counter };
    const isTime = this.board.identity.counter === 0; // else guest instructions
    const rate = isTime && counter > last.counter ? ((step - last.step) / (counter - last.counter)) * 1e6 : NaN;
    this.last = { step, counter };
    const { steps, updates, episodes, last_return: lastReturn, metrics } = message;
    if (!this.report) setTimeout(() => this.#showReport(), REPORT_MS);
    this.report = { step, steps, updates, episodes, lastReturn, rate, metrics };
  }

  #showReport() {
    const { report } = this;
    this.report = null;
    if (report && this.board && !this.#mismatch()) this.page.progress(report);
  }

  async #readParameters() {
    const values = await this.board.readParameters(this.#parameters);
    const wrong = Object.entries(values).filter(([name, value]) => !this.page.settings().set(name, value));
    if (wrong.length) throw new BoardError(`the board has ${wrong.map(([name]) => name).join(", ")} out of bounds; the others are in the fields`);
    this.#say("The fields have the board's hyperparameters.");
  }

  async #setParameters() {
    const values = this.page.settings().values();
    if (!values) throw new BoardError("a hyperparameter is not within its bounds");
    await this.board.setParameters(this.#parameters, values);
    this.#say("The board has the hyperparameters of the fields.");
  }

  // ---- Files -------------------------------------------------------------------------------------

  async #fetchCheckpoint() {
    const { compiled, description } = this.page.experiment();
    const { hash, step } = await this.board.result();
    const bytes = await this.board.files.download("/checkpoint.rltc", (done, all) => this.#progress(done, all));
    const core = new Core(compiled);
    core.restore(bytes);
    if (core.stateHash() !== hash) throw new BoardError(`the checkpoint's state is ${short(core.stateHash())}…, the board states ${short(hash)}…: fetch it again`);
    this.#keep(bytes, `${description.name}-${step}.rltc`, `The checkpoint of step ${step.toLocaleString("en")} is here: state ${short(hash)}… verified.`);
  }

  async #fetchPolicy(path) {
    const { compiled, description } = this.page.experiment();
    try {
      const bytes = await this.board.files.download(path, (done, all) => this.#progress(done, all));
      const core = new Core(compiled);
      core.openPolicy(bytes);
      this.#keep(bytes, `${description.name}${path === "/best.rltp" ? "-best" : ""}.rltp`, "The policy is here: its examples give this machine's bits.");
    } catch (error) {
      if (!(error instanceof FileRefused && error.code === FILE_NOT_FOUND)) throw error;
      throw new BoardError(`the board has no ${path}`);
    }
  }

  #keep(bytes, name, text) {
    this.fetched = { bytes, name };
    get("fetched-name").textContent = name;
    this.#say(text);
  }

  // ---- Policies ----------------------------------------------------------------------------------

  async #push() {
    const { image, name } = this.page.played();
    const core = new Core(this.page.experiment().compiled);
    core.openPolicy(image); // all checks of a board, the examples included
    const examples = core.examples(VERIFIED_EXAMPLES), sha256 = await sha256Of(image);
    const push = new Push(this.policies, { image, sha256, examples }, get("trial").valueAsNumber);
    try {
      const isInTrial = await push.begin((text) => this.#say(text), (done, all) => this.#progress(done, all));
      if (!isInTrial) return;
      this.push = push;
      this.#say(`${name} is in trial for ${push.seconds} s: ${push.verified}. Confirm keeps it; otherwise the board returns to the policy before.`);
    } finally {
      if (!this.board.connection.failure) this.slots = await this.policies.slots();
    }
    this.#poll();
  }

  async #poll() {
    const { push } = this;
    while (this.push === push && this.slots?.trial) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (this.busy || this.push !== push || !this.board) continue;
      const slots = await this.policies.slots().catch(() => null); // a lost link is said by others
      if (!slots || this.busy || this.push !== push) continue;
      this.slots = slots;
      if (!slots.trial) {
        this.push = null;
        this.#say(`The board dropped the policy: ${slots.drop}. ${this.#acting()}`, true);
      }
      this.#show();
    }
  }

  async #confirm() {
    const { push } = this;
    try {
      this.slots = await push.confirm();
      this.#say(`Confirmed: active in slot ${this.slots.active.slot}.`);
    } finally {
      this.push = null;
      if (!this.board.connection.failure) this.slots = await this.policies.slots();
    }
  }

  async #rollBack() {
    this.slots = await this.policies.rollBack(this.slots.acting.sha256);
    this.push = null;
    this.#say(`Rolled back. ${this.#acting()}`);
  }

  #acting() {
    const { active } = this.slots;
    return active ? `${short(active.sha256)} acts.` : "No policy acts.";
  }
}
