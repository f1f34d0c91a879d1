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
from rltools_host.policies.episodes import Episode
from rltools_host.policies.image import PolicyImage, parse_policy
from rltools_host.report import picture as movement

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


def flat_episode(steps: int) -> Episode:
    observations, actions = (np.zeros((steps, count), np.float32) for count in (3, 1))
    return Episode(observations, actions, np.zeros(steps), 0, 0.05)


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


@pytest.mark.all
def test_clip_and_strip_show_the_movement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    environment = "Hopper-v4"
    shown = episode_of(environment, 400)
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


@pytest.mark.all
def test_another_episode_is_not_shown_for_it() -> None:
    shown = episode_of("Hopper-v4", 20)
    if not can_draw():
        pytest.skip(f"MuJoCo has nothing to draw with: {movement.HOW_TO_GET}")
    drawn = movement.draw(image_of("Hopper-v4"), dataclasses.replace(shown, seed=8))
    assert "the episode was another one" in drawn.figure
    assert media(drawn.figure) == []


def test_a_renderer_that_fails_leaves_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movement, "RENDERER", [sys.executable, "-c", "exit(5)"])
    drawn = movement.draw(image_of("Ant-v4"), flat_episode(20))
    assert "it ended with exit code 5" in drawn.figure


def test_the_clip_ends_as_it_begins() -> None:
    """A step of 50 ms; the movement repeats every 2.3 s."""
    phase = 2 * np.pi * np.arange(1000) / 46
    observations = np.stack([np.cos(phase), np.sin(phase), 0 * phase], 1).astype(np.float32)
    shown = dataclasses.replace(flat_episode(1000), observations=observations)
    frames = movement.clip_frames(shown, 0.05)
    assert len(frames.steps) == 46
    assert 20 <= frames.steps[0] < 60
    assert frames.in_strip == (0, 2, 4, 6, 8, 10, 12, 14)
    assert frames.strip_interval_s == pytest.approx(0.1)
