"""The image that is exported or pushed, with the entry envelope that the run's gate measured
(docs/gate.md, "What a policy may be handed")."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from rltools_host.documents import Digest, typed
from rltools_host.errors import DamagedFileError
from rltools_host.files import load_json
from rltools_host.policies.contract import ENTRY_AT_REST, QUADROTOR, EntryEnvelope, entry_text
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.policies.image_writing import with_entry
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import GATE, LAST, result_file
from rltools_host.tree import command_line

ENTRY = "entry"  # the gate


class Measured(Struct, frozen=True):
    """The part of gate-entry.json that an image states."""

    policy_sha256: Digest
    entry: EntryEnvelope


def read_leaving_policy(
    run: str | RunFolder, which: str = LAST, say: Callable[[str], None] = lambda _: None
) -> PolicyImage:
    """Return the policy of a run as it is exported or pushed, and report a quadrotor's entry
    envelope.

    The image states the envelope where the run's gate has measured this policy.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder.open(run)
    image = read_run_policy(folder, which)
    if image.contract.checksum != QUADROTOR:
        return image
    if image.entry is None and (entry := measured_entry(folder, image)) is not None:
        image = with_entry(image, entry)
    if image.entry is not None:
        say(f"entry: {entry_text(image.entry)}")
        return image
    command = command_line("evaluate", str(run), "--gate", ENTRY)
    say(f"assumed: entry at rest only ({ENTRY_AT_REST}), state it by `{command}`")
    return image


def measured_entry(folder: RunFolder, image: PolicyImage) -> EntryEnvelope | None:
    """Return the entry envelope that the run's gate measured of this policy, or None."""
    path = folder.path / result_file(GATE, ENTRY)
    try:
        found: Measured = typed(load_json(path, folder.path), Measured)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        again = command_line("evaluate", str(folder.path), "--gate", ENTRY)
        raise DamagedFileError(
            f"{path} does not say what the policy may be handed ({error}): `{again}`"
        ) from None
    return found.entry if found.policy_sha256 == image.sha256 else None
