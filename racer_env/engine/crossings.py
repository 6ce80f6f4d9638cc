"""Where walls cross each other or themselves: no car can drive there, and no beam is sure of what it meets."""

import numpy as np
from numpy.typing import NDArray

from racer_env.engine.tables import TrackTables


def crossing_walls(tables: TrackTables) -> NDArray[np.int64]:
    """Pairs of wall segments that cross, (k, 2): only segments that share a cell of the grid can."""
    cell, wall = tables.walls_through_cells()
    pairs = [np.zeros((0, 2), np.int64)]
    apart = 1
    while apart < len(cell) and (together := cell[apart:] == cell[:-apart]).any():
        found = np.stack([wall[:-apart][together], wall[apart:][together]], axis=1).astype(np.int64)
        pairs.append(found[_cross(tables.segments[found[:, 0]], tables.segments[found[:, 1]])])
        apart += 1
    return np.unique(np.concatenate(pairs), axis=0)


def _cross(a: NDArray[np.void], b: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which segments of two lists properly cross. Neighbours on a wall share a point and do not."""
    ox, oy = b["x"] - a["x"], b["y"] - a["y"]
    from_a = [a["dx"] * y - a["dy"] * x for x, y in ((ox, oy), (ox + b["dx"], oy + b["dy"]))]
    from_b = [b["dx"] * y - b["dy"] * x for x, y in ((-ox, -oy), (a["dx"] - ox, a["dy"] - oy))]
    # A shared point gives a product that is zero but for rounding; a real crossing is not as close to it.
    scale = 1e-9 * np.hypot(a["dx"], a["dy"]) * np.hypot(b["dx"], b["dy"])
    return np.asarray((from_a[0] * from_a[1] < -(scale**2)) & (from_b[0] * from_b[1] < -(scale**2)))
