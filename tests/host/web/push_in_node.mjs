// Pushes a policy with the page's code to a board that answers as it is told: JSON in, JSON out
// (test_page_push.py).
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { Policies, Push } = await import(`${folder}/policies.js`);
const { image, sha256, fingerprint, examples, answers, arrived } = JSON.parse(readFileSync(0, "utf8"));
const bytes = Uint8Array.from(Buffer.from(image, "hex"));

async function pushed(answer) {
  const done = [];
  let asked = 0;
  const policies = {
    board: { name: "a board", identity: { fingerprint, experiment: "theirs" } },
    slots: async () => ({ slotBytes: 1 << 20, acting: { sha256 } }),
    isArmed: async () => false,
    upload: async () => (done.push("upload"), { slot: 1 }),
    try: async () => done.push("try"),
    forward: async () => ({ ...examples[asked++], status: 0, ...answer }),
    confirm: async () => {
      done.push("confirm");
      if (answer.denies) throw new Error("denied");
    },
    rollBack: async () => (done.push("roll back"), { active: null }),
  };
  const push = new Push(policies, { image: bytes, sha256, examples }, 10);
  try {
    await push.begin(() => {}, () => {});
    await push.confirm();
  } catch (error) {
    done.push(error.message);
    await push.confirm().catch((refusal) => done.push(refusal.message));
  }
  return done;
}

// Returns the error of an upload, of which the board states these two checksums.
async function uploaded([sha256OfBoard, crc32]) {
  const files = { upload: async () => {}, crc32: async () => crc32 };
  const policies = new Policies({ name: "a board", files });
  policies.slots = async () => ({ withUse: () => ({ sha256: sha256OfBoard }) });
  return policies.upload(bytes, sha256).then(() => "", (error) => error.message);
}

const found = { pushed: [], uploaded: [] };
for (const answer of answers) found.pushed.push(await pushed(answer));
for (const checksums of arrived) found.uploaded.push(await uploaded(checksums));
process.stdout.write(JSON.stringify(found));
