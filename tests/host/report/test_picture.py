"""The movement of a body in MuJoCo on the report: drawn where it can be, else a note."""

from __future__ import annotations

import base64
import dataclasses
import io
import os
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.build import tools
from rltools_host.environments.imports import silence_mujoco
from rltools_host.policies import evaluation
from rltools_host.policies.episodes import Episode
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report import picture as movement
from rltools_host.report.run_data import RunData
from rltools_host.report.sections.episodes import one_episode
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder

STEPS_S = {"Ant-v4": 0.05, "HalfCheetah-v4": 0.05, "Hopper-v4": 0.008}
CAN_DRAW = "import mujoco; c = mujoco.GLContext(8, 8); c.make_current(); c.free()"


def image_of(environment: str) -> PolicyImage:
    """An image of the environment's name; what it computes does not matter here."""
    return dataclasses.replace(
        parse_policy(sample_images()["pendulum"]),
        environment=environment,
        step_interval_us=round(STEPS_S[environment] * 1e6),
    )


def episode_of(environment: str, most_steps: int) -> Episode:
    """Of Gymnasium, with a body that swings its limbs."""
    tools.ensure_group("mujoco")
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    import gymnasium

    silence_mujoco()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulator = gymnasium.make(environment, disable_env_checker=True).unwrapped
    observation = simulator.reset(seed=7)[0]
    assert simulator.action_space.shape is not None
    swing = np.linspace(0, 3, simulator.action_space.shape[0])
    observations, actions, rewards = [], [], []
    for step in range(most_steps):
        action = np.float32(0.3) * np.sin(0.5 * step + swing).astype(np.float32)
        observations.append(np.asarray(observation, np.float32))
        actions.append(action)
        observation, reward, terminated, _, _ = simulator.step(action)
        rewards.append(float(reward))
        if terminated:
            break
    return Episode(np.array(observations), np.array(actions), np.array(rewards), 7, 0.05)


def flat_episode(returned: float, steps: int = 1, seed: int = 0) -> Episode:
    rewards = np.full(steps, returned / steps)
    return Episode(
        np.zeros((steps, 3), np.float32), np.zeros((steps, 1), np.float32), rewards, seed, 0.05
    )


@cache
def can_draw() -> bool:
    return any(
        subprocess.run(
            [sys.executable, "-c", CAN_DRAW],
            env={**os.environ, "MUJOCO_GL": library, "PYOPENGL_PLATFORM": library},
            capture_output=True,
            timeout=60,
        ).returncode
        == 0
        for library in movement.LIBRARIES
    )


def media(html: str) -> list[bytes]:
    return [base64.b64decode(found) for found in re.findall(r"image/webp;base64,([^\"]+)", html)]


@pytest.mark.parametrize(
    ("environment", "most_steps"),
    [
        ("Hopper-v4", 400),
        *(
            pytest.param(*each, marks=pytest.mark.all)
            for each in (("Ant-v4", 90), ("HalfCheetah-v4", 40))
        ),
    ],
)
def test_clip_and_strip_show_the_movement(
    environment: str, most_steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image

    shown = episode_of(environment, most_steps)
    if not can_draw():
        pytest.skip(f"MuJoCo has nothing to draw with: {movement.HOW_TO_GET}")
    monkeypatch.chdir(tmp_path)
    drawn = movement.draw(image_of(environment), shown)
    assert list(tmp_path.iterdir()) == []  # MuJoCo would write its warnings there
    assert "not drawn" not in drawn.figure
    clip, strip = media(drawn.figure)
    assert len(clip) < 2_000_000
    assert len(strip) < 150_000
    frames = movement.clip_frames(shown, STEPS_S[environment])
    with Image.open(io.BytesIO(clip)) as animation:
        assert animation.n_frames == len(frames.steps)
        assert animation.info["loop"] == 0  # for ever
        first = np.asarray(animation.convert("RGB"), float)
        animation.seek(animation.n_frames // 2)
        later = np.asarray(animation.convert("RGB"), float)
    assert np.abs(later - first).mean() > 1
    red, _, blue = (first[..., channel] for channel in range(3))
    is_body = red > blue + 40  # bodies are brown, the ground and the sky are not
    assert 0.003 < is_body.mean() < 0.5
    assert 0.2 < np.nonzero(is_body)[1].mean() / is_body.shape[1] < 0.8
    with Image.open(io.BytesIO(strip)) as still:
        assert still.width > len(frames.in_strip) * still.height


def test_another_episode_is_not_shown_for_it() -> None:
    shown = episode_of("Hopper-v4", 20)
    if not can_draw():
        pytest.skip(f"MuJoCo has nothing to draw with: {movement.HOW_TO_GET}")
    drawn = movement.draw(image_of("Hopper-v4"), dataclasses.replace(shown, seed=8))
    assert "the episode was another one" in drawn.figure
    assert media(drawn.figure) == []


def test_without_a_library_a_note_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program itself, for a library that MuJoCo does not find."""
    shown = episode_of("Hopper-v4", 20)
    monkeypatch.setattr(movement, "LIBRARIES", {"none-such": "EGL"})
    drawn = movement.draw(image_of("Hopper-v4"), shown)
    assert "The movement is not drawn here (EGL: not found)" in drawn.figure
    assert f"<code>{movement.HOW_TO_GET}</code>" in drawn.figure


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import os; os.abort()", "EGL: it was ended by SIGABRT; OSMesa: it was ended by SIGABRT"),
        (
            "raise SystemExit(1)",
            "EGL: it ended with exit code 1; OSMesa: it ended with exit code 1",
        ),
        ("import time; time.sleep(60)", "EGL: longer than 1 s; OSMesa: longer than 1 s"),
        (
            "import os, sys; sys.exit(3 if os.environ['MUJOCO_GL'] == 'egl' else 5)",
            "EGL: not found; OSMesa: it ended with exit code 5",
        ),
    ],
)
def test_a_renderer_that_fails_leaves_a_note(
    program: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(movement, "RENDERER", [sys.executable, "-c", program])
    monkeypatch.setattr(movement, "LONGEST_S", 1.0 if "sleep" in program else 60.0)
    drawn = movement.draw(image_of("Ant-v4"), flat_episode(1.0, steps=20))
    assert f"({expected})" in drawn.figure


def test_the_second_library_draws_where_the_first_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import os, sys, pathlib\n"
        "if os.environ['MUJOCO_GL'] == 'egl': os.abort()\n"
        "for name in ('clip', 'strip'):\n"
        "    pathlib.Path(sys.argv[3], name + '.webp').write_bytes(name.encode())\n"
    )
    monkeypatch.setattr(movement, "RENDERER", [sys.executable, "-c", program])
    drawn = movement.draw(image_of("Ant-v4"), flat_episode(1.0, steps=20))
    assert media(drawn.figure) == [b"clip", b"strip"]


def test_the_section_has_the_movement_above_its_panels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(movement, "rendered", lambda *_: (b"a clip", b"a strip"))
    image, shown = image_of("Ant-v4"), flat_episode(12.5, steps=100, seed=31)
    data = RunData(
        folder=RunFolder(tmp_path, Run()),
        metrics=(),
        image=image,
        evaluation=evaluation.evaluation_of(image, "run", 0, [shown]),
        episode=shown,
        board=None,
        hyperparameters=(),
        metrics_described=(),
    )
    section = one_episode(data)
    assert section is not None
    html = section.html()
    assert "reset with seed 31" in html
    assert "return 12.5" in html
    assert media(html) == [b"a clip", b"a strip"]
    assert html.index("data:image/webp") < html.index("<svg")
    assert "prefers-reduced-motion" in section.style


def test_the_clip_ends_as_it_begins() -> None:
    """A step of 50 ms; the movement repeats every 2.3 s."""
    phase = 2 * np.pi * np.arange(1000) / 46
    observations = np.stack([np.cos(phase), np.sin(phase), 0 * phase], 1).astype(np.float32)
    shown = dataclasses.replace(flat_episode(1.0, steps=1000), observations=observations)
    frames = movement.clip_frames(shown, 0.05)
    assert len(frames.steps) == 46
    assert 20 <= frames.steps[0] < 60
    assert frames.in_strip == (0, 2, 4, 6, 8, 10, 12, 14)
    assert frames.strip_interval_s == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("steps", "step_s", "drawn", "in_strip"),
    [
        (1, 0.05, 1, 1),
        (5, 0.05, 5, 5),
        (20, 0.05, 20, 8),
        (119, 0.05, 119, 8),
        (200, 0.008, 34, 8),  # a frame of six steps
    ],
)
def test_a_short_episode_is_drawn_whole(
    steps: int, step_s: float, drawn: int, in_strip: int
) -> None:
    frames = movement.clip_frames(flat_episode(1.0, steps), step_s)
    assert len(frames.steps) == drawn
    assert frames.steps[0] == 0
    assert frames.steps[-1] < steps
    assert len(frames.in_strip) == in_strip
    assert max(frames.in_strip) < drawn


@pytest.mark.parametrize(
    ("environment", "is_drawn"),
    [
        *((f"{name}-v4", True) for name in ("Ant", "HalfCheetah", "Hopper", "Humanoid")),
        ("Pendulum-v1", False),
        ("../markup", False),
        ("Quadrotor", False),
    ],
)
def test_what_mujoco_draws(environment: str, is_drawn: bool) -> None:
    assert movement.is_drawn_by_mujoco(environment) == is_drawn
