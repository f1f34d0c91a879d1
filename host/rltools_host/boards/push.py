"""The way of a run's policy to a board: staged, checked, tried and verified, confirmed or rolled
back.

Whatever goes wrong, the board is left with the policy that acted before. If it cannot be reached
any more, it returns to that by itself when the trial's time is over.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from rltools_host.boards.file_requests import SessionClosedError
from rltools_host.boards.file_transfer import CANDIDATE_PATH, POLICY_PATH
from rltools_host.boards.messages import DROP_REASONS, Identity, Progress, text_of_number
from rltools_host.boards.parity import ACTED, Expected
from rltools_host.boards.policies import PolicyClient, Slots
from rltools_host.boards.policy_session import PolicyTarget, Storage, load_remedy, policy_session
from rltools_host.boards.session import BoardSession
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    FileNotThereError,
    Interrupted,
    LinkLostError,
    RefusedError,
    RltError,
    UsageError,
)
from rltools_host.policies.contract import (
    SAFE_ACTION_ASSUMED,
    EntryEnvelope,
    parse_contract,
)
from rltools_host.policies.core import Float32Array
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import PolicyImage, parse_foreign_policy
from rltools_host.policies.statements import (
    INTERVAL_IN,
    SAFE_IN,
    AssumedValues,
    assumed_values,
    assumptions,
    unknown_to_earlier,
)
from rltools_host.runs.names import LAST
from rltools_host.tree import command_line

DEFAULT_TRIAL_S = 10.0
LONGEST_TRIAL_S = 2147.0  # docs/protocol.md, "Policies"
VERIFIED_EXAMPLES = 64  # at most; this library writes 8 into an image
Prove = Callable[[bool], None]
Say = Callable[[str], None]


@dataclass
class PushResult:
    """The state of a board after a push, a confirmation or a roll-back: the keys of `--json`."""

    board: str
    activated: bool = False  # what was asked for acts, for good
    active_sha256: str | None = None  # null where none is active
    slot: int | None = None
    reason: str = ""
    # Of a policy that was pushed: what it states that it may be handed, and what nobody states.
    entry: EntryEnvelope | None = None
    assumed: AssumedValues | None = None

    def take(self, slots: Slots) -> None:
        active = slots.active
        self.active_sha256 = active.sha256 if active else None
        self.slot = active.slot if active else None


@contextlib.contextmanager
def reported(board: str) -> Iterator[PushResult]:
    """Provide a result, which an error carries as its details, with the error as its reason."""
    outcome = PushResult(board)
    try:
        yield outcome
    except RltError as error:
        outcome.activated = False
        outcome.reason = str(error)
        error.details = asdict(outcome)
        raise


@dataclass(frozen=True)
class BoardPolicies:
    """The policies of a board, as `rlt policies` shows them."""

    slots: Slots
    armed: bool  # or in the air
    contract: str
    device: str
    has_built_in: bool | None = None  # compiled in, and accepted; None: it does not say
    acting: PolicyImage | None = None  # where it was read, and can be read
    unread: str = ""  # why it cannot
    assumes_safe: bool = False  # what is done where something is wrong, of the acting policy


def headline(image: PolicyImage) -> str:
    """Return the first line of a push: which policy is pushed."""
    return f"{image.experiment} of step {image.step:,}, {image.shape}: {short(image.sha256)}"


def short(sha256: str) -> str:
    return sha256[:12]


@dataclass(frozen=True)
class PushRequest:
    run: str
    target: PolicyTarget
    trial_s: float | None = None  # None: what is usual on the board
    confirm: bool = True
    which: str = LAST  # of the run's policies

    @property
    def trial_limit_s(self) -> float:
        return DEFAULT_TRIAL_S if self.trial_s is None else self.trial_s


def push(request: PushRequest, say: Say, progress: Progress | None = None) -> PushResult:
    """Carry the request out; an RltError says why the policy has not become the active one."""
    with reported(request.target.board) as outcome:
        check_push(request)
        image = read_leaving_policy(request.run, request.which, say)
        image.verify()
        with policy_session(request.target) as (session, identity):
            Push(request, image, session, identity, outcome).carry_out(say, progress)
    return outcome


def check_push(request: PushRequest) -> None:
    """Raise UsageError if no board can carry the request out."""
    ends_with_command = request.target.ends_with_command(request.target.described_board())
    if not 0.0 < request.trial_limit_s <= LONGEST_TRIAL_S:
        raise UsageError(
            f"--trial {request.trial_limit_s:g}: give seconds above 0, up to {LONGEST_TRIAL_S:g}"
        )
    if ends_with_command and not request.confirm:
        raise UsageError(
            f"--no-confirm: {request.target.board} ends with this command, and the trial with it: "
            f"give the --port of a board that stays on; see `{command_line('emulate', '--help')}`"
        )


def require_free(slots: Slots, armed: bool, target: PolicyTarget, name: str) -> None:
    """Raise RefusedError if the board flies, or tries a policy."""
    if armed:
        raise RefusedError(f"the board on {name} is armed: disarm it, then push again")
    if slots.trial is not None:
        left_s = slots.trial.trial_left_ms / 1000.0
        keep, drop = target.trial_commands
        raise RefusedError(
            f"the board on {name} tries another policy, for {left_s:.1f} s more: "
            f"`{keep}` keeps that one, `{drop}` drops it"
        )


class Push:
    """One policy on its way to one board."""

    def __init__(
        self,
        request: PushRequest,
        image: PolicyImage,
        session: BoardSession,
        identity: Identity,
        outcome: PushResult,
        prove: Prove | None = None,
    ) -> None:
        """Prepare the push of one policy to one board.

        `prove` is called while the policy acts and before it is confirmed, with whether that is a
        trial. If it raises an error, the trial ends with that.
        """
        self._prove = prove
        self._request = request
        self._image = image
        self._session = session
        self._policies: PolicyClient = session.policies
        self._identity = identity
        self._outcome = outcome
        self._confirming = False  # the command has been sent

    def carry_out(self, say: Say, progress: Progress | None) -> None:
        image, policies = self._image, self._policies
        self._check_contract()
        slots = self._check_slots()
        say(headline(image))
        if slots.active is not None and slots.active.sha256 == image.sha256:
            self._verify()
            self._say_assumptions(say)
            self._end(slots, "it was active already")
            say(f"active already in slot {self._outcome.slot}, {self._verified}")
            if self._prove is not None:
                self._prove(False)
            return
        staged = policies.upload(image.data, image.sha256, progress, self._unknown())
        say(f"staged in slot {staged.slot}, checked by the board")
        try:
            trial_s = self._request.trial_limit_s
            policies.try_candidate(image.sha256, trial_s)
            say(f"in trial for {trial_s:g} s")
            self._verify()
            say(self._verified)
            self._say_assumptions(say)
            if self._prove is not None:
                self._prove(True)
            if not self._request.confirm:
                self._leave_in_trial(say)
                return
            self._confirming = True
            self._end(policies.confirm(image.sha256), "confirmed")
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {self._take_back()}") from None
        except RltError as error:
            error.args = (f"{error}; {self._take_back()}",)
            raise
        except BaseException:
            self._take_back()
            raise
        say(f"confirmed: active in slot {self._outcome.slot}")

    # -- before anything is sent -------------------------------------------------------------------

    def _check_contract(self) -> None:
        """Raise BoardMismatchError unless the board's fingerprint is the checksum of the policy's
        contract."""
        ours = self._image.contract
        if self._image.added_inputs_at(self._identity.fingerprint) is not None:
            return
        name = self._session.description
        theirs = parse_contract(self._policies.contract(), f"the board on {name}")
        what = ours.difference(theirs) or (
            f"its contract has the checksum {self._identity.fingerprint:08x}, the policy's "
            f"{ours.checksum:08x}"
        )
        raise BoardMismatchError(
            f'the board on {name} acts by the contract "{self._identity.experiment}", for which '
            f"{self._image.origin} is not made: {what}"
        )

    def _check_slots(self) -> Slots:
        name = self._session.description
        slots = self._policies.slots()
        self._outcome.take(slots)
        require_free(slots, self._policies.is_armed(), self._request.target, name)
        if len(self._image.data) > slots.slot_bytes:
            raise RefusedError(
                f"{self._image.origin} has {len(self._image.data):,} bytes, a slot of the board on "
                f"{name} takes {slots.slot_bytes:,}: build its firmware with a larger "
                "RLT_POLICY_SLOT_BYTES, or train smaller networks"
            )
        return slots

    def _unknown(self) -> str:
        """Return what the firmware may be too old for, if it calls the image malformed."""
        target = self._request.target
        remedy = load_remedy(target.described_board(), target.contract)
        firmware = f"firmware of revision {self._identity.revision or 'unknown'}"
        return unknown_to_earlier(self._image, firmware, remedy)

    # -- the trial ---------------------------------------------------------------------------------

    @property
    def _verified(self) -> str:
        count = len(self._image.examples[:VERIFIED_EXAMPLES])
        return f"{count} examples give this machine's bits, in every layer"

    def _verify(self) -> None:
        """Raise RefusedError unless the board's network has this machine's bits for the
        image's examples."""
        for index, example in enumerate(self._image.examples[:VERIFIED_EXAMPLES]):
            observation = example.observation
            layers = self._image.runner.layer_checksums(observation)
            expected = Expected(ACTED, self._image.evaluate(observation), layers)
            answer = self._policies.forward(observation.tolist())
            if difference := expected.difference(answer):
                self._check_acting()
                raise RefusedError(
                    f"the board on {self._session.description} computes other bits than this "
                    f"machine: {difference.of(f'example {index}')}"
                )

    def _say_assumptions(self, say: Say) -> None:
        """Print what nobody states of the contract, and a safe action that is not the run's."""
        image, outcome = self._image, self._outcome
        theirs = safe_action_of(self._policies, image)
        ours = image.runner.safe_action()[0]
        is_ours = theirs.tobytes() == ours.tobytes()
        outcome.entry, outcome.assumed = image.entry, assumed_values(image, is_ours)
        for line in assumptions(image, SAFE_IN if is_ours else None, INTERVAL_IN):
            say(line)
        if not is_ours and len(theirs) == len(ours):
            there, here = (
                ", ".join(
                    f"{channel.name} {value:.6g}"
                    for channel, value in zip(image.actions, values, strict=True)
                )
                for values in (theirs, ours)
            )
            say(
                f"note: where something is wrong the board does {there}, as its own contract says, "
                f"and the run's is {here}: state it in the firmware's contract (kSafeAction)"
            )

    def _check_acting(self) -> None:
        """Raise RefusedError if the policy whose actions are compared does not act any more."""
        slots = self._policies.slots()
        if slots.acting is None or slots.acting.sha256 != self._image.sha256:
            raise RefusedError(
                f"the board on {self._session.description} dropped the policy before it was "
                f"verified: {text_of_number(slots.last_drop, DROP_REASONS)}; give a longer --trial"
            )

    def _leave_in_trial(self, say: Say) -> None:
        slots = self._policies.slots()
        self._outcome.take(slots)
        left_s = slots.trial.trial_left_ms / 1000.0 if slots.trial else 0.0
        self._outcome.reason = "in trial"
        say(f"not confirmed: {left_s:.1f} s are left")
        keep, drop = self._request.target.trial_commands
        say(f"  keep it:  {keep}\n  drop it:  {drop}")

    def _end(self, slots: Slots, reason: str) -> None:
        self._outcome.take(slots)
        self._outcome.activated, self._outcome.reason = True, reason

    def _take_back(self) -> str:
        """End the trial, and return a clause about the result."""
        try:
            slots = self._policies.roll_back(self._image.sha256)
            self._outcome.take(slots)
            active = slots.active
            return f"{short(active.sha256)} acts" if active else "no policy acts"
        except LinkLostError:
            if not self._confirming:
                return f"the board drops it within {self._request.trial_limit_s:g} s"
            target = self._request.target
            command = command_line("policies", "--board", target.board, *target.further_words)
            return f"whether it was confirmed is not known, `{command}` says it"
        except RltError as failure:
            return f"and {failure}"


def safe_action_of(policies: PolicyClient, image: PolicyImage) -> Float32Array:
    """Return the board's safe action, by its own contract."""
    nothing = [np.nan] * len(image.observations)
    return np.array(policies.forward(nothing).action_bits, np.uint32).view(np.float32)


# -- the way back, confirmation by hand, and how it stands ----------------------------------------


def roll_back(target: PolicyTarget) -> PushResult:
    """End the trial; without one, return to the policy before the active one."""
    with reported(target.board) as outcome, policy_session(target) as (session, _):
        slots = session.policies.slots()
        outcome.take(slots)
        if slots.acting is None:
            raise RefusedError(
                f"the board on {session.description} has no policy: there is nothing to roll back"
            )
        slots = session.policies.roll_back(slots.acting.sha256)
        outcome.take(slots)
        outcome.activated, outcome.reason = slots.active is not None, "rolled back"
    return outcome


def without_trial(last_drop: int) -> str:
    """Return why there is nothing to confirm, and what to do."""
    if not last_drop:
        return "push one first"
    text = text_of_number(last_drop, DROP_REASONS)
    return f"push one again (the last that it dropped: {text})"


def confirm(target: PolicyTarget) -> PushResult:
    """Keep the policy in trial."""
    with reported(target.board) as outcome, policy_session(target) as (session, _):
        slots = session.policies.slots()
        outcome.take(slots)
        if slots.trial is None:
            raise RefusedError(
                f"the board on {session.description} tries no policy: "
                f"{without_trial(slots.last_drop)}"
            )
        outcome.take(session.policies.confirm(slots.trial.sha256))
        outcome.activated, outcome.reason = True, "confirmed"
    return outcome


def policies_on(target: PolicyTarget, reads_acting: bool = False) -> BoardPolicies:
    """Return the policies of the board; nothing there is changed."""
    with policy_session(target, Storage.COPY) as (session, identity):
        slots = session.policies.slots()
        armed = session.policies.is_armed()
        found = BoardPolicies(slots, armed, identity.experiment, identity.device)
        if not reads_acting or slots.acting is None:
            return found
        path = POLICY_PATH if slots.trial is None else CANDIDATE_PATH
        try:
            content = session.files.download(path)
        except (FileNotThereError, SessionClosedError):  # its trial ended meanwhile
            slots = session.policies.slots()
            found = replace(found, slots=slots)
            if slots.acting is None:
                return found
            content = session.files.download(POLICY_PATH)
        try:
            image = parse_foreign_policy(content, f"the policy of {session.description}")
        except DamagedFileError as error:
            return replace(found, unread=str(error))
        assumes_safe = bool(image.stated.assumed & SAFE_ACTION_ASSUMED)
        if assumes_safe and not armed:
            theirs = safe_action_of(session.policies, image)
            assumes_safe = theirs.tobytes() == image.runner.safe_action()[0].tobytes()
        return replace(found, acting=image, assumes_safe=assumes_safe)
