// A connection with one board: messages to it, its messages to who listens, and requests that are
// repeated until they are answered; as boards/connection.py has it.
import { FrameDecoder, FrameEncoder } from "./frames.js";

export const HOST = { system: 255, component: 190 };
const EVERYONE = { system: 0, component: 0 };
const SILENCE_LIMIT_MS = 20_000; // without any message, heartbeats included
// ms, after which a request is sent again, and after which the board is taken for lost.
export const TIMES = { answer: 1000, limit: 15_000 };
const WORST_ERROR = 3; // MAV_SEVERITY_ERROR: smaller numbers are worse
export const USUAL_BAUD = 115_200; // as transport.py has it

/** An error that is shown to the user, as a sentence. */
export class BoardError extends Error {}
export class LinkLost extends BoardError {}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the USB number of a port, vendor and product; zeros where it is no USB port. */
function usbNumber(port) {
  const { usbVendorId = 0, usbProductId = 0 } = port.getInfo?.() ?? {};
  return [usbVendorId, usbProductId].map((each) => each.toString(16).padStart(4, "0")).join(":");
}

/** Returns the speed of a port, {baud, assumed}: that of the board of this name, else of the one whose USB
 * number the port has, else the usual one; `assumed` is a sentence where nothing states it. */
export function speedOf(port, boards, name) {
  const id = usbNumber(port).toUpperCase();
  const board = boards.find((each) => (name ? each.name === name : each.usb_ids.includes(id)));
  if (board) return { baud: board.baud, assumed: "" };
  const baud = USUAL_BAUD;
  return { baud, assumed: `Assumed: ${baud.toLocaleString("en")} baud, as no board has USB ${id}; choose the board beside Connect to state it.` };
}

/** Returns the link of a serial port of the browser's: {name, readable, writable, close()}. A link's
 * `readable` is another stream after an error that the port survives, and null once it is gone. */
export async function openSerial(port, baudRate) {
  try {
    await port.open({ baudRate, bufferSize: 1 << 16 });
  } catch {
    throw new BoardError(
      "the port cannot be opened: another tab or program has it, its device is gone, or your " +
        "user may not. Close that one, or connect the board again; on Linux, run " +
        "`sudo usermod -aG dialout $USER`, then log in again",
    );
  }
  // As pyserial leaves them: USB firmware sends to nobody without the first; on boards where they
  // are wired to reset, both together are no reset.
  await port.setSignals?.({ dataTerminalReady: true, requestToSend: true }).catch(() => {});
  return {
    name: port.getInfo?.().usbVendorId ? `USB ${usbNumber(port)}` : "the serial port",
    get readable() {
      return port.readable;
    },
    writable: port.writable,
    close: () => port.close(),
  };
}

/** A connection with one node: `target`, or any while there is none. */
export class Connection {
  constructor(link, dialect) {
    this.link = link;
    this.name = link.name;
    this.dialect = dialect;
    this.target = null;
    this.decoder = new FrameDecoder(dialect);
    this.bytesReceived = 0;
    this.failure = null; // why the link is lost
    this.lastHeard = performance.now();
    this.encoder = new FrameEncoder(dialect, HOST.system, HOST.component);
    this.listeners = new Set();
    this.waiting = new Set(); // functions that a lost link calls
    this.onLost = () => {};
    this.writer = link.writable.getWriter();
    this.reading = this.#read();
  }

  /** take(message) gets each message of these kinds, while the stream is read; ends by the function
   * that this returns. */
  listen(kinds, take) {
    const listener = { kinds: new Set(kinds), take };
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  send(name, values) {
    this.#write(this.encoder.encode(name, { ...this.#address, ...values }));
  }

  sendPayload(name, payload) {
    this.#write(this.encoder.encodePayload(name, payload));
  }

  sendCommand(command, { first = 0, second = 0, third = 0, confirmation = 0 } = {}) {
    this.send("COMMAND_LONG", {
      command,
      confirmation,
      param1: first,
      param2: second,
      param3: third,
    });
  }

  /** Asks for a message; the board acknowledges, then sends it. */
  requestMessage(name) {
    const first = this.dialect.byName.get(name).number;
    this.sendCommand(this.dialect.constants.MAV_CMD_REQUEST_MESSAGE, { first });
  }

  get silenceMs() {
    return performance.now() - this.lastHeard;
  }

  /** Throws LinkLost where the board has not been heard for long. */
  checkSilence() {
    if (this.silenceMs > SILENCE_LIMIT_MS) {
      throw new LinkLost(
        `the board on ${this.name} has been silent for ${SILENCE_LIMIT_MS / 1000} s: check the ` +
          "cable or reset the board",
      );
    }
  }

  /** Waits for `promise`; returns `late` after the time; throws where the link is lost meanwhile. */
  async within(promise, ms, late = null) {
    if (this.failure) throw this.failure;
    let timer, fail;
    const others = new Promise((resolve, reject) => {
      timer = setTimeout(() => resolve(late), ms);
      fail = () => reject(this.failure);
      this.waiting.add(fail);
    });
    try {
      return await Promise.race([promise, others]);
    } finally {
      clearTimeout(timer);
      this.waiting.delete(fail);
    }
  }

  async close() {
    this.#lose(new LinkLost(`the connection with ${this.name} was closed`));
    await this.reader?.cancel().catch(() => {});
    await this.reading;
    await this.writer.abort().catch(() => {});
    this.writer.releaseLock();
    await this.link.close().catch(() => {});
  }

  get #address() {
    const { system, component } = this.target ?? EVERYONE;
    return { target_system: system, target_component: component };
  }

  #write(frame) {
    if (this.failure) throw this.failure;
    this.writer.write(frame).catch(() => this.#lose());
  }

  async #read() {
    let stream = null;
    while (!this.failure && this.link.readable && this.link.readable !== stream) {
      stream = this.link.readable;
      this.reader = stream.getReader();
      try {
        for (;;) {
          const { value, done } = await this.reader.read();
          if (done) break;
          this.#deliver(value);
        }
      } catch {
        // Either it is gone, or the port has another stream now.
      }
      this.reader.releaseLock();
    }
    this.#lose();
  }

  #deliver(chunk) {
    this.bytesReceived += chunk.length;
    for (const message of this.decoder.feed(chunk)) {
      const { system, component, kind } = message;
      if (this.target && (system !== this.target.system || component !== this.target.component))
        continue;
      if (![0, HOST.system].includes(message.target_system ?? 0)) continue;
      if (![0, HOST.component].includes(message.target_component ?? 0)) continue;
      this.lastHeard = performance.now();
      for (const listener of [...this.listeners])
        if (listener.kinds.has(kind)) listener.take(message);
    }
  }

  #lose(failure = new LinkLost(`lost the board on ${this.name}: unplugged, or without power`)) {
    if (this.failure) return;
    this.failure = failure;
    for (const fail of this.waiting) fail();
    this.waiting.clear();
    this.onLost();
  }
}

/** A listener for messages of some kinds, and for error texts, until it is closed. */
export class Exchange {
  constructor(connection, ...kinds) {
    this.connection = connection;
    this.sent = 0; // requests
    this.errorText = ""; // the last one
    this.answerOf = () => null;
    this.stop = connection.listen([...kinds, "STATUSTEXT"], (message) => this.#take(message));
  }

  /** Sends a request, again and again, until answerOf(message) is not null, and returns that. It is
   * called at the message's arrival, before what comes behind it. */
  async ask(send, answerOf, what) {
    const end = performance.now() + TIMES.limit;
    while (performance.now() < end) {
      const answer = await this.attempt(send, answerOf);
      if (answer !== null) return answer;
    }
    throw this.unanswered(what);
  }

  /** Sends it once; null where no answer came in time. */
  async attempt(send, answerOf, ms = TIMES.answer) {
    const arrived = new Promise((resolve) => {
      this.answerOf = (message) => {
        const answer = answerOf(message) ?? null;
        if (answer !== null) {
          this.answerOf = () => null;
          resolve(answer);
        }
      };
    });
    this.sent++;
    send();
    return await this.connection.within(arrived, ms);
  }

  unanswered(what) {
    return new LinkLost(
      `the board on ${this.connection.name} does not answer for ${what}: check the cable or ` +
        `reset the board${this.because}`,
    );
  }

  /** Returns the board's error text since then, as a clause. */
  get because() {
    return this.errorText ? ` (it says "${this.errorText}")` : "";
  }

  #take(message) {
    if (message.kind !== "STATUSTEXT") this.answerOf(message);
    else if (message.severity <= WORST_ERROR) this.errorText = message.text;
  }
}

/** Runs `work` with an exchange, which ends with it; returns its result. */
export async function exchange(connection, kinds, work) {
  const opened = new Exchange(connection, ...kinds);
  try {
    return await work(opened);
  } finally {
    opened.stop();
  }
}
