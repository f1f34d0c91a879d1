// Runs a program of wasm32.cpp, and prints what it prints: node run_wasm.mjs PROGRAM.
import { readFileSync } from "node:fs";

let text = "";
const finished = new Error("finished");
const env = {
  print(address) {
    const bytes = new Uint8Array(exports.memory.buffer);
    while (bytes[address] !== 0) text += String.fromCharCode(bytes[address++]);
  },
  finish() {
    throw finished;  // there is nothing else that ends a function which does not return
  },
};
const { instance } = await WebAssembly.instantiate(readFileSync(process.argv[2]), { env });
const { exports } = instance;
try {
  exports.main();
} catch (error) {
  if (error !== finished) throw error;
}
process.stdout.write(text);
