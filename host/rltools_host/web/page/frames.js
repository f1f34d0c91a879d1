// MAVLink 2 frames out of a byte stream that may be noisy, and into one: as boards/framing.py has it,
// from which a test makes its vectors. The messages are those of dialect.json, which `rlt web`
// makes of lib/protocol/rltools.xml.
const MAGIC = 0xfd;
const HEADER_BYTES = 10,
  CHECKSUM_BYTES = 2,
  SIGNATURE_BYTES = 13,
  SIGNED_FLAG = 1;
// A frame that is still arriving is doubted only for messages that follow the last one so closely.
const SEQUENCE_WINDOW = 32;
const SIZES = { b: 1, B: 1, s: 1, h: 2, H: 2, i: 4, I: 4, f: 4, q: 8, Q: 8 };
const READERS = {
  b: (view, at) => view.getInt8(at),
  B: (view, at) => view.getUint8(at),
  h: (view, at) => view.getInt16(at, true),
  H: (view, at) => view.getUint16(at, true),
  i: (view, at) => view.getInt32(at, true),
  I: (view, at) => view.getUint32(at, true),
  q: (view, at) => Number(view.getBigInt64(at, true)),
  Q: (view, at) => Number(view.getBigUint64(at, true)),
  f: (view, at) => view.getFloat32(at, true),
};
const WRITERS = {
  b: (view, at, value) => view.setInt8(at, value),
  B: (view, at, value) => view.setUint8(at, value),
  h: (view, at, value) => view.setInt16(at, value, true),
  H: (view, at, value) => view.setUint16(at, value, true),
  i: (view, at, value) => view.setInt32(at, value, true),
  I: (view, at, value) => view.setUint32(at, value, true),
  q: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  Q: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  f: (view, at, value) => view.setFloat32(at, value, true),
};

/** Returns another program's text on the port, without what cannot be printed. */
export const printable = (text) =>
  text.replace(/[\p{C}\p{Z}]/gu, (letter) => (letter === " " ? letter : "?"));

/** Returns a field of characters, which ends at its first zero. */
function textOf(bytes) {
  const end = bytes.indexOf(0);
  return printable(new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end)));
}

/** Returns the CRC-16/MCRF4XX of some bytes and of the message's CRC_EXTRA. */
function checksum(bytes, extra) {
  let crc = 0xffff;
  const add = (byte) => {
    let low = (byte ^ crc) & 0xff;
    low = (low ^ (low << 4)) & 0xff;
    crc = ((crc >> 8) ^ (low << 8) ^ (low << 3) ^ (low >> 4)) & 0xffff;
  };
  bytes.forEach(add);
  add(extra);
  return crc;
}

/** The messages of dialect.json: how the payload of each is laid out. */
export class Dialect {
  constructor(document) {
    Object.assign(this, document); // version, constants, words
    this.byNumber = new Map();
    this.byName = new Map();
    for (const [name, [number, extra, format, names]] of Object.entries(document.messages)) {
      const fields = [];
      let size = 0;
      const kinds = [...format.matchAll(/(\d*)(\D)/g)];
      names.split(" ").forEach((field, index) => {
        const [, count, kind] = kinds[index];
        fields.push({ field, kind, count: count && Number(count), at: size });
        size += SIZES[kind] * (Number(count) || 1);
      });
      const layout = { name, number, extra, size, fields };
      this.byNumber.set(number, layout);
      this.byName.set(name, layout);
    }
  }

  /** Returns the bytes of the message's payload; fields that are not given are 0. */
  payload(name, values) {
    const { size, fields } = this.byName.get(name);
    const bytes = new Uint8Array(size);
    const view = new DataView(bytes.buffer);
    for (const { field, kind, count, at } of fields) {
      const value = values[field] ?? (count === "" ? 0 : []);
      if (kind === "s") bytes.set(new TextEncoder().encode(value).subarray(0, count), at);
      else if (count === "") WRITERS[kind](view, at, value);
      else value.forEach((each, index) => WRITERS[kind](view, at + index * SIZES[kind], each));
    }
    return bytes;
  }

  /** Returns {kind, system, component, bytes, and the fields}; bytes is the whole payload. */
  message({ name, size, fields }, frame) {
    const bytes = new Uint8Array(size);
    bytes.set(frame.subarray(HEADER_BYTES, HEADER_BYTES + frame[1]));
    const view = new DataView(bytes.buffer);
    const message = { kind: name, system: frame[5], component: frame[6], bytes };
    for (const { field, kind, count, at } of fields) {
      if (kind === "s") message[field] = textOf(bytes.subarray(at, at + count));
      else if (count === "") message[field] = READERS[kind](view, at);
      else
        message[field] = Array.from({ length: count }, (_, index) =>
          READERS[kind](view, at + index * SIZES[kind]),
        );
    }
    return message;
  }
}

/** A decoder of chunks of bytes into messages. It never throws, whatever the bytes are. */
export class FrameDecoder {
  constructor(dialect) {
    this.messagesReceived = 0;
    this.messagesRepeated = 0; // the same frame once more: dropped
    this.messagesLost = 0; // gaps in the sequence numbers of all senders
    this.bytesSkipped = 0; // that belong to no accepted frame
    this.dialect = dialect;
    this.buffer = new Uint8Array(0);
    this.last = new Map(); // sender -> the last frame
  }

  /** Returns the messages that `chunk` completes, in order. */
  feed(chunk) {
    const buffer = new Uint8Array(this.buffer.length + chunk.length);
    buffer.set(this.buffer);
    buffer.set(chunk, this.buffer.length);
    this.buffer = buffer;
    const messages = [];
    let position = 0;
    for (;;) {
      const start = buffer.indexOf(MAGIC, position);
      this.bytesSkipped += (start < 0 ? buffer.length : start) - position;
      position = start < 0 ? buffer.length : start;
      if (start < 0) break;
      const length = this.#frameLength(start);
      let resume = start + 1;
      if (length === null || start + length > buffer.length) {
        resume = this.#nextInStep(start + 1);
        if (resume === null) break; // more bytes are needed
      } else if (length && this.#isWhole(start, length)) {
        this.#accept(buffer.slice(start, start + length), messages);
        position = start + length;
        continue;
      }
      this.bytesSkipped += resume - position;
      position = resume;
    }
    this.buffer = buffer.slice(position);
    return messages;
  }

  #layout(start) {
    const at = start + 7;
    return this.dialect.byNumber.get(
      this.buffer[at] | (this.buffer[at + 1] << 8) | (this.buffer[at + 2] << 16),
    );
  }

  // Returns the bytes of the frame at `start`; 0 if there can be none, null if its header is not here.
  #frameLength(start) {
    const header = this.buffer.subarray(start, start + HEADER_BYTES);
    if (header.length > 2 && header[2] & ~SIGNED_FLAG) return 0;
    if (header.length < HEADER_BYTES) return null;
    const layout = this.#layout(start);
    if (!layout || !header[1] || header[1] > layout.size) return 0;
    return (
      HEADER_BYTES + header[1] + CHECKSUM_BYTES + (header[2] & SIGNED_FLAG ? SIGNATURE_BYTES : 0)
    );
  }

  #isWhole(start, length) {
    if (start + length > this.buffer.length) return false;
    const end = start + HEADER_BYTES + this.buffer[start + 1];
    const stated = this.buffer[end] | (this.buffer[end + 1] << 8);
    return checksum(this.buffer.subarray(start + 1, end), this.#layout(start).extra) === stated;
  }

  // Returns where two good frames that adjoin each other and the last accepted message begin: a corrupt
  // length makes a frame seem to be still arriving, and would hold these back.
  #nextInStep(position) {
    const { buffer } = this;
    for (
      let start = buffer.indexOf(MAGIC, position);
      start >= 0;
      start = buffer.indexOf(MAGIC, start + 1)
    ) {
      const first = this.#frameLength(start) ?? 0,
        behind = start + first;
      if (!first || buffer[behind] !== MAGIC) continue;
      const second = this.#frameLength(behind) ?? 0;
      const isInStep =
        second &&
        this.#followsLast(start) &&
        this.#sender(behind) === this.#sender(start) &&
        buffer[behind + 4] === ((buffer[start + 4] + 1) & 0xff);
      if (isInStep && this.#isWhole(start, first) && this.#isWhole(behind, second)) return start;
    }
    return null;
  }

  #followsLast(start) {
    const last = this.last.get(this.#sender(start));
    if (!last) return this.last.size === 0;
    const distance = (this.buffer[start + 4] - last[4]) & 0xff;
    return distance >= 1 && distance <= SEQUENCE_WINDOW;
  }

  #sender(start) {
    return (this.buffer[start + 5] << 8) | this.buffer[start + 6];
  }

  #accept(frame, messages) {
    const sender = (frame[5] << 8) | frame[6];
    const last = this.last.get(sender);
    if (
      last &&
      last.length === frame.length &&
      last.every((byte, index) => byte === frame[index])
    ) {
      this.messagesRepeated++;
      return;
    }
    if (last) this.messagesLost += (frame[4] - last[4] - 1) & 0xff;
    this.last.set(sender, frame);
    this.messagesReceived++;
    const number = frame[7] | (frame[8] << 8) | (frame[9] << 16);
    messages.push(this.dialect.message(this.dialect.byNumber.get(number), frame));
  }
}

/** Frames with ascending sequence numbers, as one sender. */
export class FrameEncoder {
  constructor(dialect, system, component) {
    Object.assign(this, { dialect, system, component, sequence: 0 });
  }

  encode(name, values) {
    return this.encodePayload(name, this.dialect.payload(name, values));
  }

  /** Returns the frame of a payload that is laid out already. */
  encodePayload(name, payload) {
    const { number, extra } = this.dialect.byName.get(name);
    let count = payload.length;
    while (count > 1 && payload[count - 1] === 0) count--;
    const frame = new Uint8Array(HEADER_BYTES + count + CHECKSUM_BYTES);
    frame.set([
      MAGIC,
      count,
      0,
      0,
      this.sequence,
      this.system,
      this.component,
      number & 0xff,
      (number >> 8) & 0xff,
      number >> 16,
    ]);
    frame.set(payload.subarray(0, count), HEADER_BYTES);
    const end = HEADER_BYTES + count;
    new DataView(frame.buffer).setUint16(end, checksum(frame.subarray(1, end), extra), true);
    this.sequence = (this.sequence + 1) & 0xff;
    return frame;
  }
}
