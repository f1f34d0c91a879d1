// Files of a board, by MAVLink FTP (https://mavlink.io/en/services/ftp.html): burst download,
// upload, CRC-32; as boards/file_transfer.py has it.
import { crc32 } from "./checkpoint.js";
import { BoardError, LinkLost, TIMES } from "./link.js";

const HEADER_BYTES = 12,
  DATA_BYTES = 239,
  PAYLOAD_BYTES = 251;
const TERMINATE = 1,
  RESET = 2,
  OPEN_TO_READ = 4,
  READ = 5,
  CREATE = 6,
  WRITE = 7,
  CRC32 = 14,
  BURST = 15,
  ACK = 128,
  NAK = 129;
// Their answers carry the session's number.
const IN_SESSION = new Set([READ, BURST, WRITE, TERMINATE]);
const NAKS = [
  ,
  "fail",
  "fail errno",
  "invalid data size",
  "invalid session",
  "no sessions available",
  "end of file",
  "unknown command",
  "file exists",
  "file protected",
  "file not found",
];
const INVALID_SESSION = 4,
  NO_SESSIONS = 5,
  END_OF_FILE = 6;
export const FILE_NOT_FOUND = 10;
// The board is taken for lost after this many answer limits without anything new. Nothing else limits
// the time of a transfer, however slow its link is.
const PATIENCE = 60;
const LONGEST_FILE = 1 << 28;
const SESSION_LIMIT_MS = 15_000; // that another program may hold the board's session
const BURST_PACKETS = 4096; // of one burst, at most
const VAIN_BURSTS = 3; // one after another that bring nothing: then there are no more
const UPLOADS = 4; // of one file, each where the board has closed the session of the last one

/** A board's refusal of a request about a file; `code` says why. */
export class FileRefused extends BoardError {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** The end of a transfer's session by the board. */
class SessionClosed extends LinkLost {}

/** MAVLink's CRC-32: zlib's, but from 0 and not inverted. */
export const mavlinkCrc32 = (bytes) => ~crc32(bytes, 0) >>> 0;

function packetOf(payload) {
  const view = new DataView(payload.buffer, payload.byteOffset);
  const size = payload[4];
  if (size > DATA_BYTES) return null;
  return {
    sequence: view.getUint16(0, true),
    session: payload[2],
    opcode: payload[3],
    request: payload[5],
    isComplete: Boolean(payload[6]),
    offset: view.getUint32(8, true),
    data: payload.slice(HEADER_BYTES, HEADER_BYTES + size),
  };
}

const wordOf = (data) =>
  data.reduceRight((word, byte, index) => (index < 4 ? word * 256 + byte : word), 0);
const reasonOf = (packet) => packet.data[0] ?? 0;
const total = (intervals) => intervals.reduce((sum, [begin, end]) => sum + end - begin, 0);

/** Returns whether it answers a request of this kind, in the same session. */
function answers(packet, request) {
  if ((packet.opcode !== ACK && packet.opcode !== NAK) || packet.request !== request.opcode)
    return false;
  return packet.session === request.session || !IN_SESSION.has(request.opcode);
}

/** Stores the data of an ACK at its offset; returns the intervals that are still missing. */
function store({ offset, data }, content, missing) {
  const end = offset + data.length;
  if (offset === end || end > content.length) return missing;
  content.set(data, offset);
  const rest = missing.flatMap(([first, last]) => [
    [first, Math.min(last, offset)],
    [Math.max(first, end), last],
  ]);
  return rest.filter(([first, last]) => first < last);
}

/** Transfers whole files, one at a time. Numbers begin at random and continue from one transfer to the
 * next, so that an answer to an earlier one has others. progress(done, all) counts bytes. */
export class Files {
  constructor(connection) {
    this.connection = connection;
    const [sequence, wish] = crypto.getRandomValues(new Uint16Array(2));
    this.sequence = sequence;
    this.wish = wish & 0xff; // the session number that an open asks for
    this.session = 0; // the number that the board answered
    this.burstsLeft = VAIN_BURSTS;
    this.packets = [];
    this.arrived = () => {};
  }

  /** Downloads a whole file, with the CRC-32 that the board states. */
  download(path, progress = () => {}) {
    return this.#transfer(path, async () => {
      const size = await this.#open(OPEN_TO_READ);
      if (size > LONGEST_FILE)
        throw new BoardError(
          `the board on ${this.connection.name} says that ${path} has ${size} bytes: reset it, ` +
            "then try again",
        );
      const content = new Uint8Array(size);
      try {
        await this.#fetch(content, progress);
        await this.#ask(TERMINATE, { session: this.session });
      } catch (error) {
        if (!this.connection.failure) this.#send(TERMINATE, { session: this.session });
        throw error;
      }
      const stated = await this.#statedCrc32(),
        received = mavlinkCrc32(content);
      if (stated !== received) {
        throw new BoardError(
          `${path} arrived from ${this.connection.name} with CRC-32 ${received.toString(16)}, ` +
            `the board states ${stated.toString(16)}: fetch it again`,
        );
      }
      return content;
    });
  }

  /** Writes a file on the board, which checks it when the session is closed; again where the board
   * has closed it after a silence. */
  upload(path, content, progress = () => {}) {
    return this.#transfer(path, async () => {
      for (let begun = 1; ; begun++) {
        try {
          return await this.#write(content, progress);
        } catch (error) {
          if (!(error instanceof SessionClosed) || begun === UPLOADS) throw error;
        }
      }
    });
  }

  async #write(content, progress) {
    await this.#open(CREATE);
    for (let offset = 0; offset < content.length; offset += DATA_BYTES) {
      const data = content.subarray(offset, offset + DATA_BYTES);
      await this.#request(WRITE, { session: this.session, offset, data });
      progress(offset + data.length, content.length);
    }
    await this.#request(TERMINATE, { session: this.session });
  }

  /** Returns MAVLink's CRC-32 of a file, as the board computes it. */
  crc32(path) {
    return this.#transfer(path, () => this.#statedCrc32());
  }

  async #transfer(path, work) {
    this.path = path;
    this.#progressed();
    this.packets = [];
    const stop = this.connection.listen(["FILE_TRANSFER_PROTOCOL"], ({ payload }) => {
      const packet = packetOf(Uint8Array.from(payload));
      if (packet) (this.packets.push(packet), this.arrived());
    });
    try {
      return await work();
    } finally {
      stop();
    }
  }

  /** Notes that something new has come. */
  #progressed() {
    this.deadline = performance.now() + PATIENCE * TIMES.answer;
  }

  async #statedCrc32() {
    return wordOf((await this.#request(CRC32, { data: this.#pathBytes })).data);
  }

  // Opens the file; returns its size. Where the session is in use it may be left from a page or
  // program of this host that has ended: that is reset. Those of other hosts expire.
  async #open(opcode) {
    const giveUp = performance.now() + SESSION_LIMIT_MS;
    this.wish = (this.wish + 1) & 0xff;
    for (let attempts = 0; ; attempts++) {
      const reply = await this.#ask(opcode, { session: this.wish, data: this.#pathBytes });
      if (reply.opcode === ACK) {
        this.session = reply.session;
        return wordOf(reply.data);
      }
      if (reasonOf(reply) !== NO_SESSIONS || performance.now() > giveUp) throw this.#refused(reply);
      if (attempts > 0) {
        const until = performance.now() + TIMES.answer;
        while (performance.now() < until && (await this.#receive())) continue;
      }
      await this.#request(RESET);
    }
  }

  // Fills `content`: a burst up to the end of the file, then the gaps one by one. Where a link has
  // no room for bursts, all is read.
  async #fetch(content, progress) {
    const size = content.length;
    let missing = size ? [[0, size]] : [];
    while (missing.length) {
      const [begin, end] = missing[0];
      missing =
        end === size && this.burstsLeft
          ? await this.#burst(content, missing, progress)
          : await this.#read(content, missing, Math.min(DATA_BYTES, end - begin));
      progress(size - total(missing), size);
    }
  }

  async #read(content, missing, size) {
    const reply = await this.#ask(READ, { session: this.session, offset: missing[0][0], size });
    if (reply.opcode === ACK) return store(reply, content, missing);
    await this.#reopen(reply, content.length);
    return missing;
  }

  async #burst(content, missing, progress) {
    const size = content.length,
      begin = missing[0][0],
      before = total(missing);
    const request = this.#send(BURST, { session: this.session, offset: begin, size: DATA_BYTES });
    // Its packets count on from the request; the next request's number lies behind theirs.
    const packets = 2 + Math.min(Math.floor((size - begin) / DATA_BYTES), BURST_PACKETS);
    this.sequence = (request.sequence + 1 + packets) & 0xffff;
    let isEnded = false;
    while (missing.length && !isEnded) {
      const reply = await this.#receive();
      if (!reply) break;
      const distance = (reply.sequence - request.sequence) & 0xffff;
      if (distance < 1 || distance > packets || !answers(reply, request)) continue;
      if (reply.opcode === NAK) {
        if (reasonOf(reply) !== END_OF_FILE) await this.#reopen(reply, size);
        isEnded = true;
        continue;
      }
      const left = total(missing);
      missing = store(reply, content, missing);
      if (total(missing) < left) this.#progressed();
      progress(size - total(missing), size);
      isEnded = reply.isComplete;
    }
    // A link may have lost the request, or the last packet, but one that loses most of a burst has
    // no room for it.
    const came = before - total(missing),
      whole = Math.min(before, BURST_PACKETS * DATA_BYTES);
    if (!came) this.burstsLeft--;
    else this.burstsLeft = isEnded || 2 * came >= whole ? VAIN_BURSTS : 0;
    return missing;
  }

  // Opens the file again where the board has closed the session, as after a long silence.
  async #reopen(reply, size) {
    if (reasonOf(reply) !== INVALID_SESSION || (await this.#open(OPEN_TO_READ)) !== size)
      throw this.#refused(reply);
  }

  async #request(opcode, fields) {
    const reply = await this.#ask(opcode, fields);
    if (reply.opcode === NAK) throw this.#refused(reply);
    return reply;
  }

  // Sends a request until its answer comes; a board does not do a repeated one again.
  async #ask(opcode, fields = {}) {
    const request = this.#send(opcode, fields);
    for (;;) {
      for (let reply; (reply = await this.#receive());) {
        if (reply.sequence !== ((request.sequence + 1) & 0xffff) || !answers(reply, request))
          continue;
        this.#progressed();
        return reply;
      }
      this.#transmit(request.payload);
    }
  }

  #send(opcode, { session = 0, offset = 0, data = [], size = data.length } = {}) {
    this.sequence = (this.sequence + 2) & 0xffff; // the answer has the number between
    const payload = new Uint8Array(PAYLOAD_BYTES);
    const view = new DataView(payload.buffer);
    view.setUint16(0, this.sequence, true);
    payload.set([session, opcode, size], 2);
    view.setUint32(8, offset, true);
    payload.set(data, HEADER_BYTES);
    this.#transmit(payload);
    return { sequence: this.sequence, session, opcode, payload };
  }

  #transmit(payload) {
    this.connection.send("FILE_TRANSFER_PROTOCOL", { payload });
  }

  // The next packet; null after a while without any.
  async #receive() {
    const left = this.deadline - performance.now();
    if (left <= 0) throw this.#silent();
    if (!this.packets.length) {
      const arrived = new Promise((resolve) => (this.arrived = resolve));
      await this.connection.within(arrived, Math.min(TIMES.answer, left));
    }
    return this.packets.shift() ?? null;
  }

  get #pathBytes() {
    return new TextEncoder().encode(this.path);
  }

  #refused(reply) {
    const code = reasonOf(reply),
      { name } = this.connection;
    if (code === INVALID_SESSION) {
      return new SessionClosed(
        `the board on ${name} closed ${this.path} during its transfer, as it does after a reset ` +
          "or a long silence: check the cable, then try again",
      );
    }
    const remedy =
      code === NO_SESSIONS
        ? "end the other program that transfers its files, then try again"
        : "flash it with firmware of this page's revision";
    return new FileRefused(
      `the board on ${name} refuses ${this.path}: ${NAKS[code] ?? `error ${code}`}; ${remedy}`,
      code,
    );
  }

  #silent() {
    return new LinkLost(
      `the board on ${this.connection.name} stopped answering during the transfer of ` +
        `${this.path}: check the cable, then try again`,
    );
  }
}
