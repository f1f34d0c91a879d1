// Reads and writes checkpoints with the page's code: JSON in, JSON out (test_page_checkpoints.py). The
// core is one that has this state, and hashes.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { checkpointOf, safetensorsOf } = await import(`${folder}/checkpoint.js`);
const { description, files, image, hyperparameters } = JSON.parse(readFileSync(0, "utf8"));
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const core = {
  sha256: (bytes) => createHash("sha256").update(bytes).digest("hex"),
  exports: { state_bytes: () => bytesOf(image).length - 64 },
  checkpoint: () => bytesOf(image),
};

const read = files.map((file) => {
  try {
    const found = checkpointOf(core, description, bytesOf(file));
    return { image: hex(found.image), hyperparameters: found.hyperparameters };
  } catch (error) {
    return { refused: error.message };
  }
});
const written = hex(safetensorsOf(core, description, hyperparameters));
process.stdout.write(JSON.stringify({ read, written }));
