// The policies of a board in the panel: slots, the push of the policy that is played, its trial, and
// its confirmation, which only the user's press does.
import { Core } from "./core.js";
import { Policies, Push, sha256Of, short } from "./policies.js";

const get = (id) => document.getElementById(`board-${id}`);
const VERIFIED_EXAMPLES = 64; // at most; this library writes 8 into an image
const POLL_MS = 1000; // of the slots, during a trial

export const element = (tag, textContent) =>
  Object.assign(document.createElement(tag), { textContent });

export class PolicyPart {
  constructor(panel) {
    this.panel = panel;
    this.forget();
    panel.onClick("push", "Checking the policy here.", () => this.#push());
    panel.onClick("confirm", "Confirming.", () => this.#confirm());
    panel.onClick("roll-back", "Rolling back.", () => this.#rollBack());
    panel.onClick("fetch-active", "Fetching the active policy.", () =>
      panel.fetchPolicy("/policy.rltp", "active.rltp"),
    );
  }

  /** Clears the panel: the board is gone. */
  forget() {
    this.policies = this.slots = null;
    this.push = null; // whose verified trial is running
  }

  /** Shows a board that was connected. */
  async begin() {
    this.policies = new Policies(this.panel.board);
    this.slots = await this.policies.slots();
  }

  get isInTrial() {
    return Boolean(this.slots?.trial);
  }

  show() {
    const { slots, push } = this;
    this.panel.enable({
      push: slots && !slots.trial && this.panel.page.played(),
      confirm: push?.isVerified && slots?.trial?.sha256 === push.sha256,
      "roll-back": slots?.acting,
      "fetch-active": slots?.active,
    });
    get("slots").replaceChildren(...(slots?.slots ?? []).map((slot) => this.#slotRow(slot)));
  }

  #slotRow(slot) {
    const use = this.panel.board.dialect.slot_uses[slot.use] ?? String(slot.use);
    const left = `, ${(slot.trial_left_ms / 1000).toFixed(0)} s left`;
    const image = [slot.experiment, slot.step.toLocaleString("en"), short(slot.sha256)];
    const cells = [
      slot.slot,
      use + (slot === this.slots.trial ? left : ""),
      ...(slot.image_bytes ? image : ["–", "–", "–"]),
    ];
    const line = document.createElement("tr");
    line.append(...cells.map((text) => element("td", text)));
    return line;
  }

  async #push() {
    const { panel } = this;
    const { image, name } = panel.page.played();
    const core = new Core(panel.page.experiment().compiled);
    core.openPolicy(image); // all checks of a board, the examples included
    const examples = core.examples(VERIFIED_EXAMPLES);
    const policy = { image, sha256: await sha256Of(image), examples };
    const push = new Push(this.policies, policy, get("trial").valueAsNumber);
    const progress = (done, all) => panel.showTransfer(done, all);
    if (!(await this.#thenSlots(() => push.begin((text) => panel.say(text), progress)))) return;
    this.push = push;
    panel.say(
      `${name} is in trial for ${push.seconds} s: ${push.verified}. Confirm keeps it; otherwise ` +
        "the board returns to the policy before.",
    );
    this.#poll();
  }

  async #confirm() {
    const { push } = this;
    this.push = null;
    await this.#thenSlots(() => push.confirm());
    this.panel.say(`Confirmed: active in slot ${this.slots.active.slot}.`);
  }

  async #rollBack() {
    this.push = null;
    await this.#thenSlots(() => this.policies.rollBack(this.slots.acting.sha256));
    this.panel.say(`Rolled back. ${this.#acting()}`);
  }

  /** Returns a clause on this page's trial, where nobody has confirmed it. */
  async endTrial() {
    if (this.isInTrial && this.push) await this.policies.rollBack(this.push.sha256);
  }

  // Does something to the policies, and reads how they stand then, also where it fails.
  async #thenSlots(work) {
    const { connection } = this.panel.board;
    try {
      return await work();
    } finally {
      if (!connection.failure) this.slots = await this.policies.slots().catch(() => this.slots);
    }
  }

  // How much of the trial is left, until it ends.
  async #poll() {
    const { panel, push } = this;
    while (this.push === push && this.isInTrial) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (panel.busy || this.push !== push) continue;
      const slots = await this.policies.slots().catch(() => null); // others report a lost link
      if (!slots || panel.busy || this.push !== push) continue;
      this.slots = slots;
      if (!slots.trial) {
        this.push = null;
        panel.say(`The board dropped the policy: ${slots.drop}. ${this.#acting()}`, true);
      }
      panel.show();
    }
  }

  #acting() {
    const { active } = this.slots;
    return active ? `${short(active.sha256)} acts.` : "No policy acts.";
  }
}
