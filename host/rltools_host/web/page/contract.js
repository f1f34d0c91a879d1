// The contract of a policy and of a board: channels and rate, as in policies/contract.py
// (docs/policy_image.md).
import { crc32 } from "./checkpoint.js";
import { hexadecimal } from "./core.js";
import { printable } from "./frames.js";
import { shortest } from "./settings.js";

const IMAGE_HEADER_BYTES = 144,
  LAYER_BYTES = 8,
  CHANNEL_BYTES = 48,
  CHOICE_BYTES = 24;
const INTERVAL_AT = 28,
  HAS_CHOICES = 2,
  FLAGS_AT = 24;

function channelOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const text = (from, to) =>
    printable(new TextDecoder().decode(bytes.subarray(from, to)).split("\0")[0]);
  return {
    name: text(0, 24),
    unit: text(24, 40),
    minimum: view.getFloat32(40, true),
    maximum: view.getFloat32(44, true),
  };
}

function records(bytes, count) {
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * CHANNEL_BYTES, (index + 1) * CHANNEL_BYTES),
  );
}

/** Returns the contract of an image that the core has accepted: {observations, actions}, records of
 * channels; {names} of choices; {interval}, µs. */
export function contractOfImage(image) {
  const view = new DataView(image.buffer, image.byteOffset);
  const [observationDim, actionDim, layers] = [16, 18, 20].map((at) => view.getUint16(at, true));
  const channels = image.subarray(IMAGE_HEADER_BYTES + LAYER_BYTES * layers);
  const all = records(channels, observationDim + actionDim);
  const [observations, actions] = [all.slice(0, observationDim), all.slice(observationDim)];
  const chosen =
    view.getUint32(FLAGS_AT, true) & HAS_CHOICES
      ? actions.map(channelOf).filter(({ unit }) => unit === "choice")
      : [];
  const count = chosen.reduce((sum, { maximum }) => sum + maximum + 1, 0);
  const from = all.length * CHANNEL_BYTES;
  return {
    observations,
    actions,
    names: channels.subarray(from, from + count * CHOICE_BYTES),
    interval: image.subarray(INTERVAL_AT, INTERVAL_AT + 4),
  };
}

/** Parses a board's /contract.bin; null where it contradicts itself. */
function contractOfBoard(content) {
  const tail = content.length - 8;
  if (tail < 0) return null;
  const view = new DataView(content.buffer, content.byteOffset + tail);
  const [observationDim, actionDim] = [view.getUint16(4, true), view.getUint16(6, true)];
  const from = (observationDim + actionDim) * CHANNEL_BYTES;
  if (from > tail) return null;
  const all = records(content, observationDim + actionDim);
  return {
    observations: all.slice(0, observationDim),
    actions: all.slice(observationDim),
    names: content.subarray(from, tail),
    interval: content.subarray(tail, tail + 4),
  };
}

/** Returns the checksum by which a board names its contract, of the first `count` observations. */
function checksumOf({ observations, actions, names, interval }, count) {
  const parts = [...observations.slice(0, count), ...actions, names, interval];
  return crc32(Uint8Array.from(parts.flatMap((part) => [...part])));
}

/** Returns whether a board with this checksum supplies the policy's inputs: the contract's
 * observations, and behind them only past actions and sums, which the executor adds by itself. */
export function isMadeFor(contract, checksum) {
  for (let count = contract.observations.length; count > 0; count--) {
    if (checksumOf(contract, count) === checksum) return true;
    if (!/_t-[1-9][0-9]*$|_sum$/.test(channelOf(contract.observations[count - 1]).name))
      return false;
  }
  return false;
}

/** Returns how a board's contract differs, as "X there, Y here". */
export function contractDifference(ours, content) {
  const theirs = contractOfBoard(content);
  if (!theirs) return "the board's contradicts itself";
  const shown = (record) => {
    const { name, unit, minimum, maximum } = channelOf(record);
    return `${name} (${unit}, ${shortest(minimum)} to ${shortest(maximum)})`;
  };
  for (const [kind, their, our] of [
    ["observation", theirs.observations, ours.observations],
    ["action", theirs.actions, ours.actions],
  ]) {
    for (let index = 0; index < Math.min(their.length, our.length); index++) {
      const [there, here] = [shown(their[index]), shown(our[index])];
      if (there !== here) return `${kind} ${index} is ${there} there, ${here} here`;
    }
    if (their.length !== our.length) return `${their.length} ${kind}s there, ${our.length} here`;
  }
  return hexadecimal(theirs.interval) === hexadecimal(ours.interval)
    ? "the names of its choices are others"
    : "a step is of another length";
}
