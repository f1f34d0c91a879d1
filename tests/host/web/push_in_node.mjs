// Pushes a policy with the page's code to a board that answers as it is told: JSON in, JSON out
// (test_page_push.py).
import { readFileSync } from "node:fs";

const [folder] = process.argv.slice(2);
const { Push } = await import(`${folder}/policies.js`);
const { image, sha256, fingerprint, examples, answers } = JSON.parse(readFileSync(0, "utf8"));
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
    confirm: async () => done.push("confirm"),
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

const found = [];
for (const answer of answers) found.push(await pushed(answer));
process.stdout.write(JSON.stringify(found));
