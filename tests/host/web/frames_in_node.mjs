// Decodes and encodes frames with the page's codec: JSON in, JSON out (test_frames.py).
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { Dialect, FrameDecoder, FrameEncoder } = await import(`${folder}/frames.js`);
const { document, streams, messages } = JSON.parse(readFileSync(0, "utf8"));
const dialect = new Dialect(document);
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");

const decoded = streams.map((chunks) => {
  const decoder = new FrameDecoder(dialect);
  const found = chunks.flatMap((chunk) => decoder.feed(bytesOf(chunk)));
  const {
    messagesReceived: received,
    messagesRepeated: repeated,
    messagesLost: lost,
    bytesSkipped: skipped,
  } = decoder;
  const told = found.map(({ kind, system, component, bytes }) => [
    kind,
    system,
    component,
    hex(bytes),
  ]);
  return { messages: told, counts: [received, repeated, lost, skipped] };
});

const encoder = new FrameEncoder(dialect, 255, 190);
const encoded = messages.map(([name, values]) => hex(encoder.encode(name, values)));
const decoder = new FrameDecoder(dialect);
const fields = encoded.flatMap((frame) => decoder.feed(bytesOf(frame)));
for (const message of fields) delete message.bytes;
process.stdout.write(JSON.stringify({ decoded, encoded, fields }));
