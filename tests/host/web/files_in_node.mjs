// Transfers files with the page's client: JSON in, JSON out (test_page_files.py). The board is played here: a
// server of MAVLink FTP that has one file, and may have a byte of it changed on its way.
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { Files } = await import(`${folder}/files.js`);
const { content, crc32, changed } = JSON.parse(readFileSync(0, "utf8"));
const ACK = 128, HEADER_BYTES = 12, DATA_BYTES = 239;
const OPEN = 4, READ = 5, CREATE = 6, WRITE = 7, CRC32 = 14, BURST = 15;

function boardWith(file, change) {
  let listener = () => {};
  const onItsWay = Uint8Array.from(file);
  if (change !== null) onItsWay[change] ^= 1;
  const written = [];
  const word = (value) => new Uint8Array(Uint32Array.of(value).buffer);
  const send = (_, { payload }) => {
    const view = new DataView(payload.buffer);
    const [size, session, opcode] = [payload[4], payload[2], payload[3]];
    const offset = view.getUint32(8, true);
    const answer = (number, data, at = 0, isLast = false) => {
      const bytes = new Uint8Array(251), fields = new DataView(bytes.buffer);
      fields.setUint16(0, (view.getUint16(0, true) + number) & 0xffff, true);
      bytes.set([session, ACK, data.length, opcode, Number(isLast)], 2);
      fields.setUint32(8, at, true);
      bytes.set(data, HEADER_BYTES);
      queueMicrotask(() => listener({ payload: bytes }));
    };
    if (opcode === BURST) {
      for (let at = offset, number = 1; at < file.length; at += DATA_BYTES, number++) {
        const data = onItsWay.subarray(at, at + DATA_BYTES);
        answer(number, data, at, at + DATA_BYTES >= file.length);
      }
      return;
    }
    if (opcode === WRITE) written.push(...payload.subarray(HEADER_BYTES, HEADER_BYTES + size));
    const data = {
      [OPEN]: () => word(file.length),
      [CREATE]: () => word(0),
      [READ]: () => onItsWay.subarray(offset, offset + size),
      [CRC32]: () => word(crc32),
    }[opcode];
    answer(1, data ? data() : [], offset);
  };
  const connection = {
    name: "a board",
    failure: null,
    send,
    listen: (_, function_) => ((listener = function_), () => (listener = () => {})),
    within: (promise) => promise,
  };
  return { files: new Files(connection), written };
}

const file = Uint8Array.from(Buffer.from(content, "hex"));
const found = [];
for (const change of [null, ...changed]) {
  const { files } = boardWith(file, change);
  try {
    found.push(Buffer.from(await files.download("/policy.rltp")).toString("hex"));
  } catch (error) {
    found.push(error.message);
  }
}
const { files, written } = boardWith(file, null);
await files.upload("/candidate.rltp", file);
process.stdout.write(JSON.stringify({ found, written: Buffer.from(written).toString("hex") }));
