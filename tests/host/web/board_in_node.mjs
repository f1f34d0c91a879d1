// The page's clients against a board that is a process here: a scenario's name and what it needs as
// JSON in, what came of it as JSON out (test_board.py).
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";

const given = JSON.parse(readFileSync(0, "utf8"));
const load = (file) => import(`${given.page}/${file}`);
const { Dialect, FrameDecoder, FrameEncoder } = await load("frames.js");
const { Connection, TIMES } = await load("link.js");
const { Board } = await load("board.js");
const { Policies, Push, sha256Of } = await load("policies.js");
const { PAUSED } = await load("watch.js");
const dialect = new Dialect(given.document);
if (given.answerMs) TIMES.answer = given.answerMs;

// ---- Links --------------------------------------------------------------------------------------

/** A new process as a link; end() is what happens where it is unplugged. */
function linkOf(command = given.command) {
  const child = spawn(command[0], command.slice(1), {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...given.environment },
  });
  child.stdin.on("error", () => {});
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const end = async () => {
    child.kill("SIGKILL");
    await gone;
  };
  return {
    name: "the test's port",
    readable: Readable.toWeb(child.stdout),
    writable: Writable.toWeb(child.stdin),
    close: end,
    end,
  };
}

/** The same with loss: of each chunk in either direction a part is dropped, or a bit is changed. */
function lossy(link, share) {
  let state = given.seed ?? 1;
  const chance = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const damage = () =>
    new TransformStream({
      transform(chunk, controller) {
        const bytes = Uint8Array.from(chunk);
        if (chance() < share) return;
        if (chance() < share)
          bytes[Math.floor(chance() * bytes.length)] ^= 1 << Math.floor(chance() * 8);
        controller.enqueue(bytes);
      },
    });
  const out = damage();
  out.readable.pipeTo(link.writable).catch(() => {});
  return { ...link, readable: link.readable.pipeThrough(damage()), writable: out.writable };
}

/** The same, with so many bytes a second to the page. */
function slow(link, bytesPerSecond) {
  const readable = link.readable.pipeThrough(
    new TransformStream({
      async transform(chunk, controller) {
        for (let from = 0; from < chunk.length; from += 250) {
          const part = chunk.subarray(from, from + 250);
          await new Promise((resolve) =>
            setTimeout(resolve, (1000 * part.length) / bytesPerSecond),
          );
          controller.enqueue(part);
        }
      },
    }),
  );
  return { ...link, readable };
}

/** The same, without what the board sends from a request of a burst to the next request. */
function withoutBursts(link) {
  const decoder = new FrameDecoder(dialect);
  let isLost = false;
  const out = new TransformStream({
    transform(chunk, controller) {
      for (const { kind, payload } of decoder.feed(chunk))
        isLost = kind === "FILE_TRANSFER_PROTOCOL" && payload[3] === 15;
      controller.enqueue(chunk);
    },
  });
  out.readable.pipeTo(link.writable).catch(() => {});
  const readable = link.readable.pipeThrough(
    new TransformStream({
      transform: (chunk, controller) => (isLost ? undefined : controller.enqueue(chunk)),
    }),
  );
  return { ...link, readable, writable: out.writable };
}

/** The same, unplugged behind so many bytes to the board. */
function unpluggedAfter(link, bytes) {
  const out = new TransformStream({
    async transform(chunk, controller) {
      bytes -= chunk.length;
      if (bytes < 0) await link.end();
      else controller.enqueue(chunk);
    },
  });
  out.readable.pipeTo(link.writable).catch(() => {});
  return { ...link, writable: out.writable };
}

/** A board that is played here: answer(message, send) gets each of the page's messages. */
function scripted(answer) {
  const decoder = new FrameDecoder(dialect),
    encoder = new FrameEncoder(dialect, 1, 191);
  const there = new TransformStream();
  const writer = there.writable.getWriter();
  const send = (kind, values) => writer.write(encoder.encode(kind, values));
  const writable = new WritableStream({
    write: (chunk) => decoder.feed(chunk).forEach((message) => answer(message, send)),
  });
  return { name: "the test's port", readable: there.readable, writable, close: async () => {} };
}

// ---- What is done with a board ------------------------------------------------------------------

const opened = [];
async function connect(link = linkOf(), limitMs = 10_000) {
  const board = await Board.connect(link, dialect, limitMs);
  opened.push(board);
  return board;
}
const saidOf = (work) =>
  work.then(
    () => "nothing was refused",
    (error) => `${error.constructor.name}: ${error.message}`,
  );
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "base64"));
const told = (slots) => ({
  uses: slots.slots.map(({ use }) => use),
  active: slots.active?.sha256 ?? "",
  drop: slots.drop,
});

async function pushOf(policies, index = 0, seconds = 10) {
  const { image, examples } = given.policies[index];
  const bytes = bytesOf(image);
  const read = ({ observation, ...rest }) => ({
    observation: Float32Array.from(observation),
    ...rest,
  });
  return new Push(
    policies,
    { image: bytes, sha256: await sha256Of(bytes), examples: examples.map(read) },
    seconds,
  );
}

const payloadHash = (file) => sha256Of(file.subarray(64));

async function train(board) {
  const reports = [];
  await board.setParameters(given.parameters, given.values);
  const { result } = await board.start((message) => reports.push([message.kind, message.step]));
  const { hash, step, state } = await result;
  const checkpoint = await board.files.download("/checkpoint.rltc");
  const policy = await board.files.download("/policy.rltp");
  return {
    identity: board.identity,
    values: await board.readParameters(given.parameters),
    reports,
    hash,
    step,
    state,
    payload: await payloadHash(checkpoint),
    policy: Buffer.from(policy).toString("base64"),
  };
}

/** The hash of a run of so many steps from the beginning. */
async function wholeRun(board, steps) {
  await board.setParameters(given.parameters, { steps });
  return (await (await board.start(() => {})).result).hash;
}

const scenarios = {
  async train() {
    return await train(await connect());
  },
  async takeOver() {
    const first = await connect();
    await first.setParameters(given.parameters, { steps: 150 });
    const { hash } = await (await first.start(() => {})).result;
    const checkpoint = await first.files.download("/checkpoint.rltc");
    const second = await connect();
    await second.setParameters(given.parameters, { steps: 300 });
    const damaged = checkpoint.slice();
    damaged[damaged.length - 1] ^= 1;
    const refused = await saidOf(second.putCheckpoint(damaged));
    const idle = (await second.askIdentity()).state;
    await second.putCheckpoint(checkpoint);
    const there = await second.result();
    const end = await (await second.resume(() => {})).result;
    const states = [idle, there.state, end.state];
    return { hash, refused, states, there: there.hash, step: there.step, end: end.hash };
  },
  async trainOverALossyLink() {
    const link = lossy(linkOf(), given.share);
    const board = await connect(link);
    const found = await train(board);
    return {
      ...found,
      lost: board.connection.decoder.messagesLost,
      skipped: board.connection.decoder.bytesSkipped,
    };
  },
  async pauseAndResume() {
    const board = await connect();
    await board.setParameters(given.parameters, given.values);
    const refused = await saidOf(board.pause());
    let seen = () => {};
    const first = new Promise((resolve) => (seen = resolve));
    const { result } = await board.start(seen);
    await first;
    const whileTraining = await saidOf(board.setParameters(given.parameters, { gamma: 0.5 }));
    const file = await saidOf(board.files.download("/checkpoint.rltc"));
    await board.pause();
    const paused = await result;
    const steps = paused.step + 100;
    await board.setParameters(given.parameters, { steps });
    const finished = await (await board.resume(() => {})).result;
    return {
      refused,
      whileTraining,
      file,
      states: [paused.state, finished.state],
      steps: [paused.step, finished.step],
      hash: finished.hash,
      whole: await wholeRun(board, steps),
    };
  },
  // A board that keeps none rests for it. Pressed: a pause comes with such a rest.
  async keepTheBest() {
    const board = await connect();
    await board.setParameters(given.parameters, given.values);
    const evaluations = [];
    const take = (message) => {
      if (message.kind !== "RLT_EVALUATION") return;
      evaluations.push(message.return_mean);
      if (given.isPressed && evaluations.length === 1) board.pause();
    };
    const states = [];
    let end = await (await board.start(take)).result;
    states.push(end.state);
    if (end.state === PAUSED) {
      end = await (await board.resume(take)).result;
      states.push(end.state);
    }
    const isKept = Boolean(board.best);
    const image = board.best?.image ?? (await board.files.download("/best.rltp"));
    return { states, evaluations, isKept, hash: end.hash, best: await sha256Of(image) };
  },
  async joinARunThatGoesOn() {
    const board = await connect();
    await board.setParameters(given.parameters, given.values);
    await board.start(() => {});
    const result = board.watch(() => {});
    await board.pause();
    const { hash, step } = await result;
    return { hash, whole: await wholeRun(board, step) };
  },
  async refusals() {
    const board = await connect();
    const gamma = await saidOf(board.setParameters(given.parameters, { gamma: 2 }));
    const none = await saidOf(board.files.download("/nothing.bin"));
    return { gamma, none, values: await board.readParameters(given.parameters) };
  },
  async resetWhileTraining() {
    const link = linkOf();
    const board = await connect(link);
    await board.setParameters(given.parameters, given.values);
    let seen = () => {};
    const first = new Promise((resolve) => (seen = resolve));
    const { result } = await board.start(seen);
    await first;
    await link.end();
    const lost = await saidOf(result);
    const again = await connect();
    return {
      lost,
      after: await saidOf(board.result()),
      state: again.identity.state,
      restarted: await saidOf(again.watch(() => {})),
    };
  },
  async push() {
    const policies = new Policies(await connect());
    const said = [],
      all = [];
    for (const index of given.policies.keys()) {
      const push = await pushOf(policies, index);
      const early = await saidOf(push.confirm());
      const isInTrial = await push.begin((text) => said.push(text));
      const trial = told(await policies.slots());
      all.push({ early, isInTrial, trial, confirmed: told(await push.confirm()) });
    }
    const again = await (
      await pushOf(policies, given.policies.length - 1)
    ).begin((text) => said.push(text));
    const active = (await policies.slots()).active.sha256;
    const back = told(await policies.rollBack(active));
    const image = await policies.board.files.download("/policy.rltp");
    return { said, all, again, back, fetched: await sha256Of(image) };
  },
  async pushOverALossyLink() {
    const policies = new Policies(await connect(lossy(linkOf(), given.share)));
    const push = await pushOf(policies, 0, 60);
    await push.begin(() => {});
    const { decoder } = policies.board.connection;
    return {
      ...told(await push.confirm()),
      skipped: decoder.bytesSkipped,
      lost: decoder.messagesLost,
    };
  },
  // A slow link has time, of which the page's clock counts twenty times as much as there is.
  async fetchOverAPoorLink() {
    const link = linkOf();
    const poor = given.bytesPerSecond ? slow(link, given.bytesPerSecond) : withoutBursts(link);
    const policies = new Policies(await connect(poor));
    const push = await pushOf(policies);
    await push.begin(() => {});
    await push.confirm();
    const now = performance.now.bind(performance);
    const times = given.bytesPerSecond ? 20 : 1;
    performance.now = () => times * now();
    try {
      return { fetched: await sha256Of(await policies.board.files.download("/policy.rltp")) };
    } finally {
      performance.now = now;
    }
  },
  async pushThatIsRefused() {
    const policies = new Policies(await connect());
    if (given.armed)
      await policies.board.command(dialect.constants.MAV_CMD_COMPONENT_ARM_DISARM, "arm", {
        first: 1,
      });
    return {
      refused: await saidOf((await pushOf(policies)).begin(() => {})),
      ...told(await policies.slots()),
    };
  },
  async otherBits() {
    const policies = new Policies(await connect());
    const push = await pushOf(policies);
    push.examples[3].layers[1] ^= 1;
    const layer = await saidOf(push.begin(() => {}));
    push.examples[3].layers[1] ^= 1;
    push.examples[0].action[0] ^= 1;
    const action = await saidOf(push.begin(() => {}));
    return {
      layer,
      action,
      confirm: await saidOf(push.confirm()),
      ...told(await policies.slots()),
    };
  },
  async unconfirmed() {
    const policies = new Policies(await connect());
    const push = await pushOf(policies, 0, 4);
    await push.begin(() => {});
    while ((await policies.slots()).trial) await new Promise((resolve) => setTimeout(resolve, 200));
    return { confirm: await saidOf(push.confirm()), ...told(await policies.slots()) };
  },
  // The first policy is active; the second is on its way when the cable is pulled.
  async unplugged() {
    const before = new Policies(await connect());
    const first = await pushOf(before);
    await first.begin(() => {});
    await first.confirm();
    await before.board.close();
    const lines = [];
    for (const bytes of given.cuts) {
      const link = unpluggedAfter(linkOf(), bytes);
      const policies = new Policies(await connect(link));
      const push = await pushOf(policies, 1);
      const said = await saidOf(push.begin(() => {}));
      await link.end();
      const after = new Policies(await connect());
      const slots = told(await after.slots());
      await after.board.close();
      lines.push({ said, ...slots });
    }
    const policies = new Policies(await connect());
    const push = await pushOf(policies, 1);
    await push.begin(() => {});
    return { lines, end: told(await push.confirm()) };
  },
  async resetInTrial() {
    const link = linkOf();
    const policies = new Policies(await connect(link));
    const push = await pushOf(policies);
    await push.begin(() => {});
    await link.end();
    const lost = await saidOf(push.confirm());
    const after = new Policies(await connect());
    const late = await pushOf(after);
    late.isVerified = true; // as one who believes that the trial goes on
    return { lost, ...told(await after.slots()), confirm: await saidOf(late.confirm()) };
  },
  async unpluggedInADownload() {
    const board = await connect();
    await board.setParameters(given.parameters, given.values);
    await (
      await board.start(() => {})
    ).result;
    const download = board.files.download(
      "/checkpoint.rltc",
      (done) => done > 20_000 && opened[0].connection.link.end(),
    );
    return {
      said: await saidOf(download),
      next: await saidOf(board.files.download("/policy.rltp")),
    };
  },
  // A board that says that its file has 4 GB.
  async hugeFile() {
    const board = await connect(
      scripted((message, send) => {
        if (message.kind === "COMMAND_LONG")
          send("RLT_IDENTITY", { protocol_version: dialect.version });
        if (message.kind !== "FILE_TRANSFER_PROTOCOL") return;
        const [low, high, session, opcode] = message.payload;
        const header = [low + 1, high + (low === 255), session, 128, 4, opcode];
        const payload = [...header, ...Array(6).fill(0), ...Array(4).fill(255)];
        send("FILE_TRANSFER_PROTOCOL", { target_system: 255, target_component: 190, payload });
      }),
    );
    return { said: await saidOf(board.files.download("/policy.rltp")) };
  },
  async strangers() {
    const links = given.commands.map(linkOf);
    return { said: await Promise.all(links.map((link) => saidOf(connect(link, given.limitMs)))) };
  },
  // The reader's stream ends with an error that the port survives: it has another one then.
  async streamThatBreaks() {
    const link = linkOf();
    const whole = link.readable.getReader();
    let controller;
    const fresh = () => new ReadableStream({ start: (own) => (controller = own) });
    const port = { ...link, readable: fresh() };
    (async () => {
      for (let count = 0; ; count++) {
        const { value, done } = await whole.read();
        if (done) return;
        if (count === 3) {
          const broken = controller;
          port.readable = fresh();
          broken.error(new Error("BufferOverrunError"));
        }
        controller.enqueue(value);
      }
    })();
    const board = await connect(port);
    const values = await board.readParameters(given.parameters);
    return { count: Object.keys(values).length, failure: String(board.connection.failure) };
  },
};

const found = await scenarios[given.scenario]();
process.stdout.write(JSON.stringify(found), () => process.exit(0));
