// The panel of a board at a serial port: its identity, and the files fetched from it. A board's text
// becomes text, never HTML.
import { Board } from "./board.js";
import { TrainingPart } from "./board_training.js";
import { PolicyPart, element } from "./board_policies.js";
import { Core, Refused } from "./core.js";
import { FILE_NOT_FOUND, FileRefused } from "./files.js";
import { Dialect } from "./frames.js";
import { BoardError, openSerial, speedOf } from "./link.js";

const get = (id) => document.getElementById(`board-${id}`);

/** Returns a clause as a sentence, with a capital letter and a period. */
const sentence = (text) =>
  `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** `page` is what this asks of the rest of it (main.js): experiment() gives {description,
 * compiled}, settings() its fields, played() the policy that is played as {image, name}, run() the
 * run that is at rest as {step, hash, file, values}; begin(), boardContinues(), progress(), evaluation() and
 * state() show a board's run; open(file) and download(bytes, name). */
export class BoardPanel {
  constructor(page) {
    this.page = page;
    this.board = null;
    this.busy = false;
    this.fetched = null; // {bytes, name}
    this.training = new TrainingPart(this);
    this.policies = new PolicyPart(this);
    this.onClick("disconnect", "Disconnecting.", () => this.#disconnect());
    get("save").addEventListener("click", () => {
      page.download(this.fetched.bytes, this.fetched.name);
    });
    get("open").addEventListener("click", () => {
      page.open(new File([this.fetched.bytes], this.fetched.name));
    });
  }

  /** Asks for a port, and connects to the board there. */
  connect() {
    return this.run("Choose the board's port.", () => this.#connect());
  }

  /** Adapts to another experiment on the page. */
  experimentChanged() {
    this.show();
    if (this.board) this.training.experimentChanged();
  }

  // ---- Shared by its parts ------------------------------------------------------------------------

  say(text, isBad = false) {
    get("status").textContent = text;
    get("status").classList.toggle("bad", isBad);
  }

  sayError(error) {
    this.say(sentence(error.message), true);
  }

  /** Attaches an action and its status text to a button. */
  onClick(id, what, work) {
    get(id).addEventListener("click", () => this.run(what, work));
  }

  /** Runs one action at a time, and shows its error. */
  async run(what, work) {
    if (this.busy) return;
    const focused = document.activeElement;
    this.busy = true;
    this.say(what);
    this.show();
    try {
      await work();
      if (this.board?.connection.failure) throw this.board.connection.failure;
    } catch (error) {
      if (!(error instanceof BoardError) && !(error instanceof Refused)) throw error;
      this.sayError(error);
    } finally {
      this.busy = false;
      get("transfer").hidden = true;
      if (this.board?.connection.failure) this.#forget();
      this.show();
      this.#focus(focused);
    }
  }

  // A button that was disabled meanwhile has lost the focus. Where it stays disabled, the button that
  // undoes the most takes it, and never the one that confirms.
  #focus(button) {
    if (document.activeElement !== document.body || button === document.body) return;
    const isThere = !button.hidden && !button.disabled;
    (isThere ? button : get(this.board ? "disconnect" : "connect")).focus();
  }

  showTransfer(done, all) {
    get("transfer").hidden = false;
    get("transfer").value = done / all;
  }

  /** Enables those of the buttons that can be pressed. */
  enable(buttons) {
    for (const [id, isEnabled] of Object.entries(buttons)) {
      get(id).disabled = this.busy || !isEnabled;
    }
  }

  show() {
    const { board } = this;
    get("connect").hidden = get("kind-row").hidden = Boolean(board);
    get("disconnect").hidden = !board;
    this.enable({ connect: true, disconnect: true });
    get("train").hidden = board?.identity.program !== "train";
    get("policies").hidden = board?.identity.program !== "infer";
    get("fetched").hidden = !this.fetched;
    get("identity").replaceChildren(...(board ? this.#identityRows() : []));
    this.training.show();
    this.policies.show();
  }

  download(path) {
    return this.board.files.download(path, (done, all) => this.showTransfer(done, all));
  }

  /** Plays a policy of the board that passes the checks here; `kept` has its bytes, if they are here. */
  async fetchPolicy(path, name, kept) {
    const core = new Core(this.page.experiment().compiled);
    try {
      const bytes = kept ?? (await this.download(path));
      core.openPolicy(bytes);
      this.keep(bytes, name, "The policy is here: its examples give this machine's bits.");
    } catch (error) {
      if (!(error instanceof FileRefused && error.code === FILE_NOT_FOUND)) throw error;
      throw new BoardError(`the board has no ${path}`);
    }
  }

  /** Offers a fetched file for download. */
  keep(bytes, name, text) {
    this.fetched = { bytes, name };
    get("fetched-name").textContent = name;
    this.say(text);
  }

  // ---- Connection -------------------------------------------------------------------------------

  async #connect() {
    let port;
    try {
      port = await navigator.serial.requestPort();
    } catch (error) {
      if (error.name !== "SecurityError") return this.say("No port was chosen.");
      throw new BoardError("the browser asks for a port only just after a press: press again");
    }
    const { baud, assumed } = speedOf(port, this.page.boards(), get("kind").value);
    this.say(`Asking the board who it is. ${assumed}`);
    this.dialect ??= new Dialect(await (await fetch("dialect.json")).json());
    this.board = await Board.connect(await openSerial(port, baud), this.dialect);
    const { board } = this;
    board.connection.onLost = () => this.#lost(board);
    this.say(`Connected to ${board.identity.board} on ${board.name}. ${assumed}`);
    await (board.identity.program === "infer" ? this.policies : this.training).begin();
  }

  async #disconnect() {
    await this.policies.endTrial();
    const { board } = this;
    this.#forget();
    await board.close();
    this.say("Not connected.");
  }

  // The cable is pulled while nothing is asked.
  #lost(board) {
    if (this.board !== board || this.busy) return;
    const trial = this.policies.isInTrial ? "; it drops the policy in trial in time" : "";
    this.#forget();
    this.say(sentence(board.connection.failure.message + trial), true);
    this.show();
  }

  #forget() {
    const { board } = this;
    this.board = null;
    this.training.forget();
    this.policies.forget();
    if (!board) return;
    board.connection.onLost = () => {};
    board.close();
  }

  #identityRows() {
    const { identity, connection } = this.board;
    const isTrainer = identity.program === "train";
    const rows = {
      board: identity.board,
      [isTrainer ? "experiment" : "contract"]: identity.experiment,
      device: identity.device,
      revision: identity.revision || "–",
      fingerprint: identity.fingerprint.toString(16).padStart(8, "0"),
    };
    const serial = identity.unique_id.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    if (/[^0]/.test(serial)) rows.serial = serial;
    if (isTrainer) rows.state = this.board.stateName(this.training.state);
    const { messagesLost } = connection.decoder;
    if (messagesLost) rows["messages lost"] = messagesLost;
    return Object.entries(rows).map(([name, value]) => {
      const row = document.createElement("div");
      row.append(element("dt", name), element("dd", value));
      return row;
    });
  }
}
