"""Policies of a Crazyflie with the app of integrations/crazyflie, over its radio or USB.

It has one slot, and a trial begins when the policy flies: a push ends with the policy staged, and
the pilot confirms it after the flight. Nothing is done while it flies.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping

from rltools_host.boards.messages import (
    DROP_REASONS,
    PolicySlot,
    Progress,
    SlotUse,
    name_of,
    text_of_number,
)
from rltools_host.boards.policies import Slots
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import (
    BoardPolicies,
    PushRequest,
    PushResult,
    Say,
    headline,
    reported,
    without_trial,
)
from rltools_host.drones.vehicles.crazyflie_link import CrazyflieLink
from rltools_host.errors import DamagedFileError, RefusedError, UsageError
from rltools_host.policies import POLICY_REASONS
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import PolicyImage, parse_foreign_policy
from rltools_host.policies.statements import assumed_values, unknown_to_earlier
from rltools_host.runs.saves import (
    HEADER,
    MAGIC,
)

CONTRACT = "quadrotor"
DEVICE = "CortexM4"
# integrations/crazyflie/src/policy/interface.h
LOGGED = tuple(
    f"rlt.{name}"
    for name in (
        *("pilot", "upload", "refusal", "refusalAt", "candidate", "lastDrop", "builtIn"),
        *("active", "received"),
    )
)
POLICY_FLIES = 1  # of rlt.pilot
RECEIVING, CHECKING, ACCEPTED, REFUSED = 1, 2, 3, 4  # of rlt.upload
STAGED, TRIAL = 1, 2  # of rlt.candidate
SUPERVISOR = "supervisor.info"
ARMED, AUTO_ARMED, FLYING = 1 << 1, 1 << 2, 1 << 4  # its bits
CHECK_TIMEOUT_S = 5.0  # 13-64-64-4 and 8 examples take 20 ms
LONGEST_TRIAL_S = 65535

Values = Mapping[str, int]


class CrazyflieApp:
    """The app and its slot, behind a link."""

    def __init__(self, link: CrazyflieLink) -> None:
        self.link = link
        self.name = f"the Crazyflie on {link.uri}"

    def grounded(self) -> Values:
        """Return the logged values; raise RefusedError where the Crazyflie flies, or somebody armed
        it."""
        values = self.link.values()
        if flies(values):
            raise RefusedError(f"{self.name} flies: land it first")
        if is_armed(values):
            raise RefusedError(f"{self.name} is armed: disarm it first")
        return values

    def upload(self, image: PolicyImage, progress: Progress | None) -> None:
        """Write the image into the slot, where the app checks it, and read it back."""
        if not self.link.write(image.data, progress):
            values = self.link.values()
            raise RefusedError(
                f"{self.name} did not take byte {values['rlt.received']:,} of the policy: "
                "it begins to fly, or another program writes to it"
            )
        values = self.link.values_when(
            lambda now: now["rlt.upload"] not in (RECEIVING, CHECKING), CHECK_TIMEOUT_S
        )
        if values["rlt.upload"] == REFUSED:
            raise RefusedError(f"{self.name} refuses the policy: {refusal(values, image)}")
        if values["rlt.upload"] != ACCEPTED:
            raise RefusedError(
                f"{self.name} has {values['rlt.received']:,} bytes of {len(image.data):,} and does "
                "not check them: push again"
            )
        if self.link.read(len(image.data)) != image.data:
            self.ask("rlt.rollBack", values)
            raise RefusedError(
                f"{self.name} has stored other bytes than it was sent, and gives them up"
            )

    def ask(self, parameter: str, before: Values) -> Values:
        """Send a command to the app; return the values when the candidate or the active policy has
        changed."""
        self.link.set(parameter, 1)
        return self.link.values_when(
            lambda now: any(now[name] != before[name] for name in ("rlt.candidate", "rlt.active")),
            CHECK_TIMEOUT_S,
        )

    def image(self) -> PolicyImage | None:
        """Return the image in the slot; None where there is none."""
        capacity = self.link.memory_bytes
        header = self.link.read(HEADER.size)
        fields = HEADER.unpack(header)
        if fields[0] != MAGIC or not HEADER.size <= fields[3] <= capacity:
            return None
        with contextlib.suppress(DamagedFileError):
            return parse_foreign_policy(self.link.read(fields[3]), f"the policy of {self.name}")
        return None


def flies(values: Values) -> bool:
    return values["rlt.pilot"] == POLICY_FLIES or bool(values.get(SUPERVISOR, 0) & FLYING)


def is_armed(values: Values) -> bool:
    """Return whether somebody armed it: one that arms itself is armed as soon as it is upright."""
    return values.get(SUPERVISOR, 0) & (ARMED | AUTO_ARMED) == ARMED


def refusal(values: Values, image: PolicyImage) -> str:
    number, index = values["rlt.refusal"], values["rlt.refusalAt"]
    name = name_of(number, POLICY_REASONS)
    text = f"{name}: {text_of_number(number, POLICY_REASONS)}"
    channels = (*image.observations, *image.actions)
    if name in ("other_contract", "history_too_long") and index < len(channels):
        text += f' (channel {index}, here "{channels[index].name}" in {channels[index].unit})'
    if name == "malformed":
        text += unknown_to_earlier(
            image, "its app", "flash it with integrations/crazyflie of this revision"
        )
    return text


@contextlib.contextmanager
def connected(target: PolicyTarget) -> Iterator[CrazyflieApp]:
    link = CrazyflieLink(target.port, LOGGED, (SUPERVISOR,))
    with contextlib.closing(link):
        yield CrazyflieApp(link)


def check_push(request: PushRequest) -> None:
    """Raise UsageError where the request makes no sense for any Crazyflie."""
    if not request.confirm:
        raise UsageError(
            "--no-confirm has no effect with --board crazyflie: leave it out, the pilot "
            "confirms the policy after the flight"
        )
    trial_s = request.trial_s
    if trial_s is not None and not 0.0 < trial_s <= LONGEST_TRIAL_S:
        raise UsageError(f"--trial {trial_s:g}: give seconds above 0, up to {LONGEST_TRIAL_S:,}")


def push(request: PushRequest, say: Say, progress: Progress | None = None) -> PushResult:
    """Upload and stage a run's policy; raise an RltError where it is not staged."""
    check_push(request)
    target, trial_s = request.target, request.trial_s
    with reported(target.board) as outcome:
        image = read_leaving_policy(request.run, request.which, say)
        image.verify()
        with connected(target) as app:
            values = app.grounded()
            if values["rlt.candidate"] == TRIAL:
                keep, drop = target.trial_commands
                raise RefusedError(
                    f"{app.name} tries another policy: `{keep}` keeps that one, `{drop}` drops it"
                )
            if len(image.data) > app.link.memory_bytes:
                raise RefusedError(
                    f"{image.origin} has {len(image.data):,} bytes, {app.name} takes "
                    f"{app.link.memory_bytes:,}: train smaller networks"
                )
            say(headline(image))
            app.upload(image, progress)
            if trial_s is not None:
                app.link.set("rlt.trial", math.ceil(trial_s))
            say("staged, checked by the Crazyflie and read back")
            keep, drop = target.trial_commands
            say(
                "its trial begins when it flies: set rlt.enable to 1 in the air\n"
                f"  keep it:  {keep}\n  drop it:  {drop}"
            )
            outcome.slot, outcome.reason = 0, "staged"
            # Where something is wrong the stock controller flies.
            outcome.entry, outcome.assumed = image.entry, assumed_values(image, False)
    return outcome


def take(outcome: PushResult, app: CrazyflieApp, values: Values) -> None:
    image = app.image() if values["rlt.active"] else None
    outcome.active_sha256 = image.sha256 if image else None
    outcome.slot = 0 if image else None


def confirm(target: PolicyTarget) -> PushResult:
    """Keep the policy that has flown."""
    with reported(target.board) as outcome, connected(target) as app:
        before = app.grounded()
        if before["rlt.candidate"] == STAGED:
            raise RefusedError(f"the policy of {app.name} has not flown: there is no trial yet")
        if before["rlt.candidate"] != TRIAL:
            why = without_trial(int(before["rlt.lastDrop"]))
            raise RefusedError(f"{app.name} tries no policy: {why}")
        values = app.ask("rlt.confirm", before)
        if not values["rlt.active"]:
            why = text_of_number(values["rlt.lastDrop"], DROP_REASONS)
            raise RefusedError(f"{app.name} dropped the policy before it was confirmed: {why}")
        take(outcome, app, values)
        outcome.activated, outcome.reason = True, "confirmed"
    return outcome


def roll_back(target: PolicyTarget) -> PushResult:
    """Give up the pushed policy: on trial, staged, or confirmed."""
    with reported(target.board) as outcome, connected(target) as app:
        before = app.grounded()
        if before["rlt.candidate"] not in (STAGED, TRIAL):
            if not before["rlt.active"]:
                raise RefusedError(f"{app.name} has no pushed policy: nothing can be rolled back")
            if not before["rlt.builtIn"]:
                raise RefusedError(f"{app.name} has no compiled-in policy to return to")
        take(outcome, app, app.ask("rlt.rollBack", before))
        outcome.activated, outcome.reason = bool(before["rlt.builtIn"]), "rolled back"
    return outcome


def policies_on(target: PolicyTarget, reads_acting: bool = False) -> BoardPolicies:
    """Return the policies that it has. The image is read in any case."""
    with connected(target) as app:
        values = app.link.values()
        image = app.image()
        use = SlotUse.EMPTY
        if values["rlt.candidate"] == TRIAL:
            use = SlotUse.TRIAL
        elif values["rlt.candidate"] == STAGED:
            use = SlotUse.STAGED
        elif values["rlt.active"]:
            use = SlotUse.ACTIVE
        kept = image if use != SlotUse.EMPTY else None
        slot = PolicySlot(
            slot=0,
            slots=1,
            use=use,
            slot_bytes=app.link.memory_bytes,
            image_bytes=len(kept.data) if kept else 0,
            sha256=kept.sha256 if kept else "",
            state_sha256=kept.state_sha256 if kept else "",
            experiment=kept.experiment if kept else "",
            environment=kept.environment if kept else "",
            seed=kept.seed if kept else 0,
            step=kept.step if kept else 0,
            trial_left_ms=0,  # not known
            last_drop=values["rlt.lastDrop"],
            refused_error=0,
            refused_reason=values["rlt.refusal"],
            refused_at=values["rlt.refusalAt"],
        )
        armed = flies(values) or is_armed(values)
        acting = kept if reads_acting and use in (SlotUse.TRIAL, SlotUse.ACTIVE) else None
        has_built_in = bool(values["rlt.builtIn"])
        return BoardPolicies(Slots((slot,)), armed, CONTRACT, DEVICE, has_built_in, acting)
