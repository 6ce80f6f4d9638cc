"""Explanations of panels, overlays and charts in plain words with their units, and how they are shown.

Every panel, overlay and chart has an entry, which the tests check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pygame

from racer_viewer.translation import _, mark
from racer_viewer.ui.theme import CORNER, PADDING, TEXT_SMALL, Colour, Theme


@dataclass(frozen=True)
class Explanation:
    """One or two sentences about a panel or chart. units: units of its numbers; empty if it shows none."""

    title: str
    text: str
    units: str = ""


PANEL_EXPLANATIONS: Mapping[str, Explanation] = {
    "timing": Explanation(
        mark("Timing"),
        mark(
            "The time of this lap, the last and the best one, and the difference to the best at the last gate. Below"
            " are the three sectors: purple is the fastest of all cars, green your own best, yellow slower."
        ),
        mark("seconds"),
    ),
    "gaps": Explanation(
        mark("Gaps"),
        mark("The nearest cars, from the one farthest ahead. Minus is ahead of the followed car, plus is behind it."),
        mark("seconds"),
    ),
    "inputs": Explanation(
        mark("Inputs"),
        mark(
            "The bars are what the car does, the hollow markers what its driver asks for; steering and pedals take a"
            " moment to follow. The graph shows the last two seconds."
        ),
        mark("percent of full travel; steering to the right is positive"),
    ),
    "physics": Explanation(
        mark("Physics"),
        mark(
            "The surface below the car and its grip, and how much the car slides: slip is the angle between where it"
            " points and where it moves. Bars and arrows are the forces on it."
        ),
        mark("degrees, degrees/s, your unit of speed, kilonewtons"),
    ),
    "speed": Explanation(
        mark("Speed"),
        mark("Speed of the followed car. The segments reach from standstill to top speed."),
        mark("your unit of speed; one unit of length is one metre"),
    ),
    "reward": Explanation(
        mark("Reward"),
        mark(
            "The points that an agent learns from: progress along the circuit pays, walls, grass and standing still"
            " cost. Bars are this tick, the column at the right is the sum of the episode."
        ),
        mark("points; a tick is 1/60 s"),
    ),
    "agent": Explanation(
        mark("Agent"),
        mark(
            "How much reward the agent expects from here on, how much its actions vary in training, and which inputs"
            " decide what it does now: the fan shows its nine rays."
        ),
        mark("normalised reward; percent of the influence"),
    ),
    "map": Explanation(mark("Map"), mark("The whole circuit with all cars. The line across the road is the start.")),
    "rays": Explanation(
        mark("Rays"),
        mark(
            "The nine distances to the walls that an agent sees. With speed, turning, steering, lap position and"
            " distance to the centre line they are all its input."
        ),
        mark("units of length, one is a metre; red is near"),
    ),
    "gates": Explanation(
        mark("Gates"), mark("Lines across the road that a lap must cross in order; the bright one is next.")
    ),
    "names": Explanation(
        mark("Names"), mark("The driver of each car. A ghost is a car to compare with, which nothing can touch.")
    ),
    "episodes": Explanation(
        mark("Episodes"),
        mark(
            "The last drives of all cars: an episode ends when its car stands still, when its time is over or when"
            " you skip it."
        ),
        mark("points of reward, laps, seconds"),
    ),
}
"""Explanations of overlay panels, and of overlays without a panel, by name."""

VIEW_EXPLANATIONS: Mapping[str, Explanation] = {
    "policy": Explanation(
        mark("Newest policy"),
        mark(
            "The policy of the last update drives in real time, without the noise of training. It is replaced while"
            " it drives."
        ),
    ),
    "swarm": Explanation(
        mark("All training cars"),
        mark(
            "Every car that collects experience: green ones earn more than usual in this run, purple ones less. A"
            " cross is an episode that ended at a standstill. Below: cars stopped in the last 5 s,"
            " and cars at a wall now."
        ),
    ),
    "timeline": Explanation(
        mark("Timeline"),
        mark("All of the run so far. Drag to see how the policy of any time drove."),
        mark("environment steps"),
    ),
}
"""Explanations of the other parts of the training screen, by name."""

CHART_EXPLANATIONS: Mapping[str, Explanation] = {
    "reward": Explanation(
        mark("Reward per second"),
        mark("What a car earns per second, stacked by component; the white line is the total. It should rise."),
        mark("points per second"),
    ),
    "laps": Explanation(
        mark("Lap times"),
        mark("A dot for each whole lap of any car; the line is the fastest so far. It should fall."),
        mark("seconds"),
    ),
    "completion": Explanation(
        mark("Completion rate"),
        mark("The chance that a training car drives a whole lap without coming to a stop. It should rise to 100 %."),
        mark("percent"),
    ),
    "sectors": Explanation(
        mark("Sector times"),
        mark("The median time of each third of the lap. A sector whose time still falls is where the policy improves."),
        mark("seconds"),
    ),
    "episode": Explanation(
        mark("Episode reward"),
        mark("What a car earns in a whole episode, as the mean of the last 100 episodes."),
        mark("points"),
    ),
    "entropy": Explanation(
        mark("Entropy"),
        mark("How random the actions are. It falls while the policy becomes sure, also below zero."),
        mark("nats"),
    ),
    "loss": Explanation(
        mark("Policy loss"),
        mark("The objective of the last policy update. It stays around zero; its size means little."),
        mark("no unit"),
    ),
    "actor": Explanation(
        mark("Actor loss"),
        mark("The negative return that SAC expects of its own actions. It falls while driving improves."),
        mark("points"),
    ),
    "critic": Explanation(
        mark("Critic loss"),
        mark("How wrong SAC's predictions of the return are. It should stay small."),
        mark("points squared"),
    ),
    "clone": Explanation(
        mark("Cloning loss"),
        mark("How far the policy's actions are from the driver's on laps that it has not learned from."),
        mark("squared difference of the actions"),
    ),
    "temperature": Explanation(
        mark("Entropy coefficient"),
        mark("How much SAC values random actions against reward. It falls when exploring is no longer needed."),
        mark("points per nat"),
    ),
    "kl": Explanation(
        mark("KL divergence"),
        mark("How far an update moved the policy. 0.003 to 0.02 is usual; far above, learning may become unstable."),
        mark("nats"),
    ),
    "explained": Explanation(
        mark("Explained variance"),
        mark(
            "How well the value function predicts returns: 1 is perfect, 0 is no better than a guess. It drops once"
            " all cars drive alike."
        ),
        mark("no unit, at most 1"),
    ),
    "speed": Explanation(
        mark("Steps per second"),
        mark("Training speed of this machine, all cars together."),
        mark("environment steps per second"),
    ),
}
"""Explanations of charts by name."""

LAP_EXPLANATIONS: Mapping[str, Explanation] = {
    "gap": Explanation(
        mark("Gap"),
        mark(
            "How far the second lap is behind the first at each point of the circuit. Where the line rises, the second"
            " lap loses time; where it falls, it wins some back."
        ),
        mark("seconds over units of distance"),
    ),
    "speed": Explanation(
        mark("Speed of both laps"),
        mark("The deepest points are the corners: who is faster there carries that speed along the next straight."),
        mark("your unit of speed over units of distance"),
    ),
    "steering": Explanation(
        mark("Steering of both laps"),
        mark("How far the front wheels are turned. A calm line needs few and small corrections."),
        mark("share of full lock; right is positive"),
    ),
    "pedals": Explanation(
        mark("Pedals of both laps"),
        mark("Throttle above zero, brake below. It shows who brakes later and who is on the throttle earlier."),
        mark("share of full travel"),
    ),
    "lines": Explanation(
        mark("Lines of both laps"),
        mark(
            "Where both cars drove. The numbers are the places where most time is won or lost; the second map shows"
            " the place that is chosen, or the one below the mouse."
        ),
    ),
}
"""Explanations of the charts and maps that compare two laps, by name."""

BOX_WIDTH, LINE_GAP = 300, 3
"""Width of a box and distance between its lines, at scale 1 [px]."""
OFF = 14
"""Distance between the box and what it explains, at scale 1 [px]."""
OPACITY = 240


def draw_explanation(
    surface: pygame.Surface, theme: Theme, explanation: Explanation, beside: pygame.Rect
) -> pygame.Rect:
    """Draw the box of an explanation beside an area, at the side that has room; return the box's area [px]."""
    within = surface.get_rect()
    picture = explanation_box(theme, explanation, min(theme.px(BOX_WIDTH), within.width - 2 * theme.px(PADDING)))
    area = picture.get_rect(topleft=(beside.right + theme.px(OFF), beside.top))
    if area.right > within.right:
        area.right = beside.left - theme.px(OFF)
    return surface.blit(picture, area.clamp(within))


@lru_cache(maxsize=16)
def explanation_box(theme: Theme, explanation: Explanation, width: int) -> pygame.Surface:
    """Return the picture of an explanation on a dark plate of at most this width [px]."""
    padding, palette = theme.px(PADDING), theme.palette
    longest = max(theme.width(line, TEXT_SMALL) for line, _ in _lines(theme, explanation, width - 2 * padding))
    entry = _entry(theme, explanation, longest)
    box = pygame.Surface((longest + 2 * padding, entry.get_height() + 2 * padding), pygame.SRCALPHA, 32)
    pygame.draw.rect(box, (*palette.panel[:3], OPACITY), box.get_rect(), border_radius=theme.px(CORNER))
    pygame.draw.rect(box, palette.line, box.get_rect(), theme.px(1), border_radius=theme.px(CORNER))
    box.blit(entry, (padding, padding))
    return box


COLUMN_WIDTH, COLUMN_GAP, ENTRY_GAP = 330, 28, 12
"""Smallest width of a column, and distances between columns and between entries, at scale 1 [px]."""
SHRINK_STEP, MIN_SHRINK = 0.95, 0.3
"""Factor by which text shrinks until everything fits, and its lower limit."""


def explanation_columns(theme: Theme, explanations: Sequence[Explanation], size: tuple[int, int]) -> pygame.Surface:
    """Return a picture of this size with all explanations in columns, in smaller text if they do not fit."""
    picture = pygame.Surface(size, pygame.SRCALPHA, 32)
    shrink = 1.0
    columns = _columns(theme, explanations, size)
    while columns is None and shrink > MIN_SHRINK:
        shrink *= SHRINK_STEP
        columns = _columns(Theme(theme.scale * shrink, theme.palette), explanations, size)
    for entry, place in columns or ():
        picture.blit(entry, place)
    return picture


def _columns(
    theme: Theme, explanations: Sequence[Explanation], size: tuple[int, int]
) -> list[tuple[pygame.Surface, tuple[int, int]]] | None:
    """Return the entries with their positions, column by column; None if they do not fit."""
    gap = theme.px(COLUMN_GAP)
    count = max(1, (size[0] + gap) // (theme.px(COLUMN_WIDTH) + gap))
    width = (size[0] + gap) // count - gap
    entries = [_entry(theme, each, width) for each in explanations]
    placed: list[tuple[pygame.Surface, tuple[int, int]]] = []
    column, y = 0, 0
    for entry in entries:
        if y and y + entry.get_height() > size[1]:
            column, y = column + 1, 0
        if column >= count or entry.get_height() > size[1]:
            return None
        placed.append((entry, (column * (width + gap), y)))
        y += entry.get_height() + theme.px(ENTRY_GAP)
    return placed


def _entry(theme: Theme, explanation: Explanation, width: int) -> pygame.Surface:
    """Return the picture of an explanation without a background."""
    pitch = theme.line_height(TEXT_SMALL) + theme.px(LINE_GAP)
    lines = _lines(theme, explanation, width)
    picture = pygame.Surface((width, len(lines) * pitch), pygame.SRCALPHA, 32)
    for number, (line, colour) in enumerate(lines):
        picture.blit(theme.text(line, TEXT_SMALL, colour), (0, number * pitch))
    return picture


def _lines(theme: Theme, explanation: Explanation, width: int) -> list[tuple[str, Colour]]:
    """Return title, sentences and units as lines of at most this width [px], with their colours."""
    palette = theme.palette
    words = _("Units: {units}").format(units=_(explanation.units)) if explanation.units else ""
    units = theme.wrapped(words, width, TEXT_SMALL) if words else []
    return [
        (_(explanation.title), palette.accent),
        *((line, palette.text) for line in theme.wrapped(_(explanation.text), width, TEXT_SMALL)),
        *((line, palette.faint) for line in units),
    ]
