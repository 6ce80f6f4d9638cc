"""The predicted centreline search against the search itself, and trigonometry against the library."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from racer_env.engine import Track, build_track, circuits, load_circuit
from racer_env.engine.compiled import Compiled, bind, entry
from racer_env.engine.locate import locate, nearest_sample, search
from racer_env.engine.trigonometry import arctan2, sin_cos

Floats = NDArray[np.float64]

POINTS = 20_000
MAX_OFFSET = 70.0


@entry
def both_ways(track: Compiled, points: Compiled, arcs: Compiled) -> None:
    """Set the arcs of points as `locate` gives them, and as the search around the nearest sample gives them."""
    frame = track.frame[0]
    for i in range(len(points)):
        x, y = points[i, 0], points[i, 1]
        arcs[i, 0] = locate(track, x, y)[1]
        sample, square = nearest_sample(track, frame, x, y)
        arc = sample * frame.length / frame.samples
        arcs[i, 1] = search(track.stretches, track.samples[sample].stretch, arc, square, frame.spacing, x, y)


@entry
def trigonometry(angles: Compiled, results: Compiled) -> None:
    for i in range(len(angles)):
        results[i, 0], results[i, 1] = sin_cos(angles[i])
        results[i, 2] = arctan2(angles[i], 2.0)


def uneven_track(seed: int) -> Track:
    """Build a track from control points at very different distances, two of them equal: joints are far from smooth."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2.0 * math.pi, 14))
    radii = rng.uniform(60.0, 200.0, 14)
    points = np.column_stack([radii * np.cos(angles), radii * np.sin(angles), rng.uniform(6.0, 20.0, 14)])
    points[5] = points[6]
    return build_track(points)


def points_around(track: Track, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    arcs = rng.uniform(0.0, track.length, POINTS)
    arcs[: len(track.centreline.arcs)] = track.centreline.arcs[:POINTS]
    ways = track.centreline.tangents(arcs)
    offsets = rng.uniform(-MAX_OFFSET, MAX_OFFSET, POINTS)
    offsets[::10] = 0.0
    return track.centreline.points(arcs) + offsets[:, None] * np.column_stack([-ways[:, 1], ways[:, 0]])


@pytest.mark.parametrize("name", [circuit.id for circuit in circuits()] + ["uneven 1", "uneven 2", "uneven 3"])
def test_the_predicted_result_is_that_of_the_search(name: str) -> None:
    track = uneven_track(int(name.split()[1])) if name.startswith("uneven") else load_circuit(name)
    points = points_around(track, seed=1)
    arcs = np.zeros((POINTS, 2))
    bind(both_ways, track.tables, points, arcs)(track.tables, points, arcs)
    apart = np.abs(arcs[:, 0] - np.mod(arcs[:, 1], track.length))
    assert np.minimum(apart, track.length - apart).max() < 1e-11


def test_trigonometry_agrees_with_the_library() -> None:
    quarters = np.arange(-80.0, 80.0) * math.pi / 4.0
    angles = np.concatenate([np.linspace(-7.0, 7.0, 50_001), quarters, [1e-300, 99.9, 100.1, -1e6]])
    results = np.zeros((len(angles), 3))
    bind(trigonometry, angles, results)(angles, results)
    expected = np.column_stack([np.sin(angles), np.cos(angles), np.arctan2(angles, 2.0)])
    assert np.abs(results - expected).max() < 5e-16
