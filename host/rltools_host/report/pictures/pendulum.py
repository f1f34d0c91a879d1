"""The pendulum moving as in the episode."""

from __future__ import annotations

import numpy as np

from rltools_host.policies.evaluation import Episode
from rltools_host.policies.image import PolicyImage
from rltools_host.report.markup import number, text
from rltools_host.report.picture import Picture
from rltools_host.report.plot import Panel, Values

ROD = 78.0  # length of the drawn pendulum
ANGLE = ("cos_angle", "sin_angle")
STYLE = """\
.pendulum { max-width: 230px; margin: 0 auto; }
.pendulum .ghosts { stroke: var(--soft); stroke-width: 7; stroke-linecap: round; opacity: 0.16; }
.pendulum .rod { stroke: var(--first); stroke-width: 11; stroke-linecap: round; }
.pendulum .pivot { fill: var(--card); stroke: var(--first); stroke-width: 3; }
.pendulum .rail { fill: var(--line); }
.pendulum .torque { fill: var(--second); }
.pendulum text { fill: var(--soft); font-size: 11px; }
"""


def draw(image: PolicyImage, episode: Episode) -> Picture | None:
    if tuple(channel.name for channel in image.contract.observations) != (*ANGLE, "velocity"):
        return None
    degrees = np.degrees(angles_of(episode))
    return Picture(
        figure=figure(image, degrees),
        style=STYLE + animation(image, episode),
        panels=(Panel("angle from upright, degrees", degrees, (-180, 180), 360),),
        replaced=ANGLE,
    )


def angles_of(episode: Episode) -> Values:
    """Angle from upright, radians in [-pi, pi]."""
    cosine, sine = episode.observations[:, 0], episode.observations[:, 1]
    return np.arctan2(sine, cosine).astype(float)


def figure(image: PolicyImage, degrees: Values) -> str:
    """The moving pendulum, over its positions a tenth of a second apart."""
    torque = image.actions[0]
    unit = text(torque.unit.replace("*", "·"))
    ghosts = "".join(
        f'<line x2="0" y2="{-ROD:g}" transform="rotate({-angle:.1f})"/>' for angle in degrees[::2]
    )
    return f"""<figure><svg class="pendulum" viewBox="-100 -100 200 232" role="img"
 aria-label="The pendulum during the episode"><g class="ghosts">{ghosts}</g>
<g class="moving swing"><line class="rod" x2="0" y2="{-ROD:g}"/></g>
<circle class="pivot" r="5"/>
<rect class="rail" x="-80" y="112" width="160" height="6" rx="3"/>
<rect class="torque moving push" x="-80" y="110" width="160" height="10" rx="3"/>
<text x="-80" y="106">torque {number(torque.minimum)} {unit}</text>
<text x="80" y="106" text-anchor="end">{number(torque.maximum)} {unit}</text>
</svg><figcaption>In real time; shadows show where it was.</figcaption></figure>"""


def animation(image: PolicyImage, episode: Episode) -> str:
    """Key frames of the angle and the torque."""
    seconds = len(episode.rewards) * image.step_interval_us * 1e-6
    turn = -np.degrees(np.unwrap(angles_of(episode)))
    torque = episode.actions[:, 0].astype(float) / image.actions[0].maximum
    percent = np.arange(len(turn)) * 100 / len(turn)
    swing = "".join(
        f"{at:.4g}%{{transform:rotate({angle:.1f}deg)}}"
        for at, angle in zip([*percent, 100], [*turn, turn[-1]], strict=True)
    )
    push = "".join(
        f"{at:.4g}%{{{torque_clip(value)}}}"
        for at, value in zip([*percent, 100], [*torque, torque[-1]], strict=True)
    )
    return (
        f":root{{--episode:{seconds:g}s}}\n"
        f".swing{{animation-name:swing;transform:rotate({turn[-1]:.1f}deg)}}\n"
        f".push{{animation-name:push;{torque_clip(torque[-1])}}}\n"
        f"@keyframes swing{{{swing}}}\n@keyframes push{{{push}}}\n"
    )


def torque_clip(share: float) -> str:
    """Shows the part of a bar from its middle to `share` in [-1, 1]."""
    left, right = 50 + 50 * min(share, 0.0), 50 - 50 * max(share, 0.0)
    return f"clip-path:inset(0 {right:.1f}% 0 {left:.1f}%)"
