// Checkpoint files: /checkpoint.rltc of a board, and the .safetensors that `rlt train` writes
// (host/rltools_host/runs/checkpoint.py). Both hold the state's bytes one after another.
import { Refused, hexadecimal } from "./core.js";

const MAGIC = 0x43544c52; // "RLTC"
const VERSION = 1, HEADER_BYTES = 64, SHA256_AT = 24, SHA256_BYTES = 32, CHECKED_BYTES = 56;
const FORMAT = "rltools-checkpoint-2";
const HASH_PLACE = "0".repeat(64);
const MAX_HEADER_BYTES = 1 << 20;
const DTYPE_BYTES = { F32: 4, F64: 8, U32: 4, U8: 1 };

const refuse = (reason) => {
  throw new Refused(`checkpoint refused: ${reason}`);
};

export function crc32(bytes, from = 0xffffffff) {
  let crc = from;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** Returns {image, hyperparameters} of a file of either kind: a /checkpoint.rltc that the core checks, and
 * what the file says of the run. */
export function checkpointOf(core, description, file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < HEADER_BYTES) refuse("it is not a checkpoint");
  if (view.getUint32(0, true) === MAGIC) return { image: file, hyperparameters: {} };
  return fromSafetensors(core, description, file, view);
}

function fromSafetensors(core, description, file, view) {
  const headerBytes = Number(view.getBigUint64(0, true));
  if (headerBytes > Math.min(MAX_HEADER_BYTES, file.length - 8)) refuse("it is not a checkpoint");
  const header = new TextDecoder().decode(file.subarray(8, 8 + headerBytes));
  let entries, metadata, hyperparameters;
  try {
    ({ __metadata__: metadata, ...entries } = JSON.parse(header));
    if (metadata.format !== FORMAT) throw new Error();
    hyperparameters = JSON.parse(metadata.hyperparameters);
  } catch {
    refuse("it is not a checkpoint");
  }
  const digest = String(metadata.header_sha256);
  const unsigned = new TextEncoder().encode(header.replace(digest, HASH_PLACE));
  if (digest.length !== 64 || core.sha256(unsigned) !== digest) refuse("its header is damaged");
  if (metadata.experiment !== description.name) refuse(`it is of ${String(metadata.experiment).slice(0, 40)}`);
  if (parseInt(metadata.fingerprint, 16) !== description.fingerprint) refuse("of another experiment");
  const payload = file.subarray(8 + headerBytes);
  for (const { name, dtype, shape, offset } of description.state) {
    const entry = entries[name];
    if (entry?.dtype !== dtype || String(entry?.shape) !== String(shape) || entry?.data_offsets?.[0] !== offset) {
      refuse(`its tensor ${name} is another`);
    }
  }
  if (payload.length !== core.exports.state_bytes()) refuse("of another size");
  const image = new Uint8Array(HEADER_BYTES + payload.length);
  const fields = new DataView(image.buffer);
  fields.setUint32(0, MAGIC, true);
  fields.setUint16(4, VERSION, true);
  fields.setUint16(6, HEADER_BYTES, true);
  fields.setUint32(8, description.fingerprint, true);
  fields.setUint32(12, payload.length, true);
  fields.setUint32(16, Number(metadata.step), true);
  for (let i = 0; i < SHA256_BYTES; i++) {
    image[SHA256_AT + i] = parseInt(String(metadata.state_sha256).slice(2 * i, 2 * i + 2), 16);
  }
  fields.setUint32(CHECKED_BYTES, crc32(image.subarray(0, CHECKED_BYTES)), true);
  image.set(payload, HEADER_BYTES);
  return { image, hyperparameters };
}

/** Returns the present state as the .safetensors of `rlt train`. */
export function safetensorsOf(core, description, values) {
  const image = core.checkpoint();
  const fields = new DataView(image.buffer);
  const entries = {
    __metadata__: {
      format: FORMAT,
      experiment: description.name,
      fingerprint: description.fingerprint.toString(16).padStart(8, "0"),
      step: String(fields.getUint32(16, true)),
      state_sha256: hexadecimal(image.subarray(SHA256_AT, SHA256_AT + SHA256_BYTES)),
      hyperparameters: JSON.stringify(values),
      versions: "{}",
      learning: JSON.stringify(description.learning),
      header_sha256: HASH_PLACE,
    },
  };
  for (const { name, dtype, shape, offset } of description.state) {
    const bytes = shape.reduce((product, size) => product * size, DTYPE_BYTES[dtype]);
    entries[name] = { dtype, shape, data_offsets: [offset, offset + bytes] };
  }
  let header = JSON.stringify(entries);
  const encoder = new TextEncoder();
  header += " ".repeat(-encoder.encode(header).length & 7);
  header = header.replace(HASH_PLACE, core.sha256(encoder.encode(header)));
  const bytes = encoder.encode(header);
  const file = new Uint8Array(8 + bytes.length + image.length - HEADER_BYTES);
  new DataView(file.buffer).setBigUint64(0, BigInt(bytes.length), true);
  file.set(bytes, 8);
  file.set(image.subarray(HEADER_BYTES), 8 + bytes.length);
  return file;
}
