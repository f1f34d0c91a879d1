"""`rlt bench any-airframe`: our policy for every quadrotor, RAPTOR's published one, and one that
was trained for one airframe alone, through the gate any-airframe.

Whoever flies sees the same flights, judged by the same code. Ours is an image in the firmware's
executor; a peer is a process that is told what a policy observes and says how fast the rotors are
to turn. A policy of the contract commands thrusts: the thrust of that speed is commanded for the
peer, by the airframe's own curve, as the motors of a vehicle would have it.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from msgspec import structs
from numpy.typing import NDArray

import rltools_host
from benchmarks import harness
from benchmarks.harness import Contender, Json, MeasurementError, Peers, Row
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.drones.flight.gate_result import GateResult, fly_gate
from rltools_host.drones.flight.simulator import MAX_TOGETHER, Array, check_policy, flight_library
from rltools_host.errors import RltError
from rltools_host.lines import aligned
from rltools_host.policies.image import Float32Array, PolicyImage, read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.training.hyperparameters import given_numbers

GATE = "any-airframe"
OURS, ALONE = "foundation-quadrotor", "crazyflie-ppo"
TABLES = "tables"  # the gate's part with the published airframes
PEERS = "airframes"
START_S, ANSWER_S = 120.0, 60.0
# How often a peer acts: (its description, the option of its script).
RATES = (("each 2 ms", "--each-tick"), ("each 10 ms", ""))
# A peer that does not hold a Crazyflie at rest in still air is not used as it is meant.
CALM = {"airframe": 3, "start_share": 0, "latency_ms": 0, "noise": 0, "gust_m_s2": 0}
CALM_FLIGHTS, CALM_S = 4, 3.0
TITLES = {"raptor": "RAPTOR"}


def any_airframe(
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="The run of our policy. [default: trains foundation-quadrotor]"
        ),
    ] = None,
    alone: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="The run of a policy for one airframe. [default: trains crazyflie-ppo]",
        ),
    ] = None,
    peers: Peers = None,
    episodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Airframes through each part. [default: the gate's]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of all flights."),
    ] = None,
    json_output: Json = False,
) -> None:
    """Fly airframes that no training saw, by our policy and others."""
    changed = given_numbers(settings or ())
    gate = gate_of(episodes, changed)
    names = harness.chosen_peers(PEERS, peers)
    for given in (run, alone):
        if given is not None:
            policy_of(given)
    pilots: dict[str, Callable[[], tuple[GateResult, Row]]] = {
        OURS: partial(fly_trained, run, OURS, gate),
        ALONE: partial(fly_trained, alone, ALONE, gate),
    }
    for name in names:
        for rate, option in RATES:
            pilots[f"{TITLES.get(name, name)} {rate}"] = partial(fly_peer, name, option, gate)
    document = {
        "gate": gate.name,
        "seed": gate.seed,
        "episodes": gate.episodes,
        "settings": changed,
        "rows": fly_all(pilots),
        **harness.conditions(),
    }
    harness.tell(document, lines(document), json_output)


# ---- Pilots --------------------------------------------------------------------------------------


class Pilot(Contender):
    """A peer's process in the place of a policy, which begins with the flights' tick 0."""

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        variables = {**harness.ONE_THREAD, "PYTHONPATH": str(harness.PEERS)}
        super().__init__(name, command, variables, directory / f"{name}.log", START_S)
        self._process.send_signal(signal.SIGCONT)
        self._rows = np.zeros((MAX_TOGETHER, len(flight_library().contract.observations)), "<f4")

    def speeds(self, tick: int, slots: NDArray[np.uint32], observations: Float32Array) -> Any:
        """Return (n, 4) in [0, 1], of flights in these slots of the batch."""
        self._rows[slots] = observations
        self._send(np.uint32(tick).tobytes() + self._rows.tobytes())
        count = 16 * MAX_TOGETHER
        self._receive(lambda: len(self._rest) >= count, ANSWER_S)
        answer = np.frombuffer(self._rest[:count], "<f4").reshape(-1, 4)[slots]
        self._rest = self._rest[count:]
        if not np.isfinite(answer).all():
            raise MeasurementError(f"{self.name} answered something that is not a number")
        return np.clip(answer, 0, 1)


def thrust_parts(airframes: Array, speeds: NDArray[Any]) -> NDArray[np.float64]:
    """Return (n, 4) parts of the greatest thrust, of rotors at these parts of the greatest speed.

    The airframes are n records of Airframe.
    """
    t0, t1, t2 = airframes["thrust"].astype(float).T[:, :, None]
    thrusts: NDArray[np.float64] = (t0 + t1 * speeds + t2 * speeds**2) / (t0 + t1 + t2)
    return thrusts


def flown(pilot: Pilot, gate: Gate) -> GateResult:
    """Fly a gate without parts."""
    airframes = gate.airframes()

    def act(tick: int, index: NDArray[np.uint32], observations: Float32Array) -> Any:
        speeds = pilot.speeds(tick, index % MAX_TOGETHER, observations)
        return thrust_parts(airframes[index], speeds)

    return GateResult(gate, "", pilot.name, "", "", gate.fly(act))


def check_use(pilot: Pilot, gate: Gate) -> None:
    """Refuse a peer that does not hold a Crazyflie: it is not used as it is meant."""
    tables = gate.kinds[TABLES]
    settings = {**tables.settings, **CALM}
    changed = {"episodes": CALM_FLIGHTS, "seconds": CALM_S, "settings": settings}
    calm = flown(pilot, structs.replace(tables, **changed))
    if calm.all.successes < CALM_FLIGHTS:
        raise MeasurementError(
            f"{pilot.name} does not hold a Crazyflie at rest in still air: it is not used as it is "
            "meant, and is not compared"
        )


def policy_of(run: str) -> PolicyImage:
    """Return the policy of a run, which must be one for a quadrotor."""
    image = read_run_policy(RunFolder.open(run))
    check_policy(image)
    return image


def fly_run(run: str, gate: Gate) -> tuple[GateResult, Row]:
    """Fly a run's policy."""
    return fly_gate(gate, policy_of(run), run), {"version": rltools_host.__version__}


def fly_trained(run: str | None, experiment: str, gate: Gate) -> tuple[GateResult, Row]:
    """Fly a run's policy, or one that is trained here and now with seed 0."""
    if run is not None:
        return fly_run(run, gate)
    with tempfile.TemporaryDirectory() as directory:
        folder = str(Path(directory) / "run")
        words = ["train", experiment, "--board", "host", "--seed", "0", "--out", folder]
        document = harness.rlt(words, harness.ONE_THREAD)
        result, row = fly_run(folder, gate)
    return result, {**row, "train_s": document["train_s"], "state_sha256": document["state_sha256"]}


def fly_peer(name: str, option: str, gate: Gate) -> tuple[GateResult, Row]:
    """Fly a peer in its own environment."""
    command, folder = harness.command_of(PEERS, name)
    pilot = Pilot(name, [*command, *([option] if option else [])], folder)
    try:
        check_use(pilot, gate)
        outcomes = [flown(pilot, kind).outcomes for kind in gate.kinds.values()]
        result = GateResult(gate, "", name, "", "", np.concatenate(outcomes))
        return result, {"version": str(pilot.introduction.get("version"))}
    finally:
        pilot.end()


# ---- The comparison ------------------------------------------------------------------------------


def fly_all(pilots: Mapping[str, Callable[[], tuple[GateResult, Row]]]) -> list[Row]:
    """Let each fly, and return a row for each, or the reason why it did not."""
    rows: list[Row] = []
    for title, fly in pilots.items():
        print(f"flying {title}", file=sys.stderr)
        try:
            result, row = fly()
        except RltError as error:
            rows.append({"name": title, "title": title, "error": str(error)})
            continue
        rows.append({"name": title, "title": title, **row, **row_of(result)})
    return rows


def gate_of(episodes: int | None, settings: Mapping[str, float]) -> Gate:
    """Return the gate with so many airframes in each part, and these settings in all of them."""
    gate = load_gate(GATE).with_starts(episodes, None)
    parts = {
        name: structs.replace(part, settings={**part.settings, **settings})
        for name, part in gate.parts.items()
    }
    changed = structs.replace(gate, parts=parts)
    for kind in changed.kinds.values():
        flight_library().setting_bits(kind.settings)
    return changed


def row_of(result: GateResult) -> Row:
    """Return the figures of the flights."""
    document = result.document()
    tables = result.by_part[TABLES].document()["tables"]
    return {
        **{key: document[key] for key in ("success_rate", "interval", "parts", "map")},
        "tables": tables,
    }


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return rates by part and, of one part, by published airframe, for people."""
    good = [row for row in document["rows"] if "error" not in row]
    lines = [
        f"The gate {document['gate']}, {document['episodes']:,} airframes, seed "
        f"{document['seed']}; successful flights, %",
        "",
    ]
    changed = ", ".join(f"{name}={value:g}" for name, value in document["settings"].items())
    if changed:
        lines[0] += f"; with {changed}"
    for key, name in (("parts", "part"), ("tables", "table")):
        heads = list(dict.fromkeys(each[name] for row in good for each in row[key]))
        rates = [
            {each[name]: f"{100 * each['success_rate']:.1f}" for each in row[key]} for row in good
        ]
        table = [(name, *(row["title"] for row in good))]
        table += [(head, *(rate.get(head, "-") for rate in rates)) for head in heads]
        lines += [*(aligned(table) if good else []), ""]
    versions = [f"{row['title']} {row['version']}" for row in good if row.get("version")]
    lines.append(f"  {', '.join(versions)}; {harness.machine_text(document)}")
    lines += [f"{row['title']}: {row['error']}" for row in document["rows"] if "error" in row]
    return lines


if __name__ == "__main__":
    harness.main(any_airframe, "--run latest --episodes 100")
