"""Walls: collision of a moving car with them."""

import math

from racer_env.engine.car import wrap_angle
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.tables import WALL_NEAR, cell_at, squared_distance

COLLISION_RADIUS = 1.0
"""Radius of the circle that stands for the car in collisions [units]."""
SWEEP_STEP = 0.75
"""Distance between the points at which a longer move is tested [units]."""
WALL_FRICTION = 0.3
"""Fraction of the speed along a wall that a hit takes."""
BOUNCE = 0.08
"""Fraction of the speed with which a wall throws the car back."""
GLANCE_GAP, CRASH_GAP = 0.5, 0.8
"""Gaps between car and wall after touching it while moving away or along, and after hitting it [units]."""
HARD_HIT = 0.5
"""Minimum severity (0 along the wall, 1 straight at it) of a hit that turns the car along the wall."""
HARD_HIT_TURN, HARD_HIT_YAW_LOSS = 0.4, 0.5
"""Fractions of the turn to the wall's direction and of the yaw rate lost, for the hardest hit."""
NO_DIRECTION, NO_SPEED = 1e-10, 1e-6
"""Distance and speed below which a direction is undefined."""


@part
def meet_walls(track: Compiled, car: Compiled, old_x: float, old_y: float) -> None:
    """Stop the car's move at the first wall it touches, apply the hit, and set `wall_contact`."""
    if not _open_around(track.cells[cell_at(track.frame[0], old_x, old_y)]):
        _sweep(track, car, old_x, old_y)
    wall, square = nearest_wall(track, car.x, car.y)
    if square < COLLISION_RADIUS**2:
        _hit(track.segments[wall], car)
        wall, square = nearest_wall(track, car.x, car.y)
    car.wall_contact = square < WALL_NEAR**2


@part
def _open_around(cell: Compiled) -> bool:
    """Return True if no wall passes through the cell and its eight neighbours: a tick cannot carry the car farther."""
    return min(cell.jump[0], cell.jump[1], cell.jump[2], cell.jump[3]) >= 2


@part
def nearest_wall(track: Compiled, x: float, y: float) -> tuple[int, float]:
    """Return the nearest wall segment within WALL_NEAR (the inner wall's on a tie) and its squared distance."""
    cell = track.cells[cell_at(track.frame[0], x, y)]
    nearest, best = -1, math.inf
    for j in range(cell.walls, cell.walls + cell.near):
        i = track.lists[j]
        square = squared_distance(track.segments[i], x, y)
        if square < best or (square == best and i < nearest):
            nearest, best = i, square
    return nearest, best


@part
def _sweep(track: Compiled, car: Compiled, old_x: float, old_y: float) -> None:
    """Move the car back to the first point of a long move, except its end, that touches a wall."""
    dx, dy = car.x - old_x, car.y - old_y
    moved = math.sqrt(dx * dx + dy * dy)
    if moved <= SWEEP_STEP:
        return
    steps = math.ceil(moved / SWEEP_STEP)
    for i in range(1, steps):
        x, y = old_x + dx * i / steps, old_y + dy * i / steps
        _, square = nearest_wall(track, x, y)
        if square < COLLISION_RADIUS**2:
            car.x, car.y = x, y
            return


@part
def _hit(wall: Compiled, car: Compiled) -> None:
    """Push the car out of a wall; if it was moving into the wall, also reduce its speed and turn it."""
    along = (car.x - wall.x) * wall.dx + (car.y - wall.y) * wall.dy
    along = min(1.0, max(0.0, along * wall.per_square))
    nx, ny = car.x - wall.x - along * wall.dx, car.y - wall.y - along * wall.dy
    distance = math.sqrt(nx * nx + ny * ny)
    nx, ny = (nx / distance, ny / distance) if distance >= NO_DIRECTION else (0.0, 1.0)
    depth = COLLISION_RADIUS - distance
    into = car.vx * nx + car.vy * ny
    if into >= 0.0:
        car.x += nx * (depth + GLANCE_GAP)
        car.y += ny * (depth + GLANCE_GAP)
        return
    tx, ty = car.vx - into * nx, car.vy - into * ny
    ratio = min(1.0, math.sqrt(tx * tx + ty * ty) / car.speed) if car.speed > NO_SPEED else 0.0
    severity = math.acos(ratio) / (math.pi / 2.0)
    kept, thrown = 1.0 - WALL_FRICTION, BOUNCE * car.speed
    car.vx, car.vy = kept * tx + thrown * nx, kept * ty + thrown * ny
    car.speed = math.sqrt(car.vx * car.vx + car.vy * car.vy)
    car.x += nx * (depth + CRASH_GAP)
    car.y += ny * (depth + CRASH_GAP)
    if severity > HARD_HIT:
        hardness = 2.0 * (severity - HARD_HIT)
        forward = 1.0 if ty * nx - tx * ny >= 0.0 else -1.0
        wall_heading = math.atan2(forward * nx, -forward * ny)
        car.heading += HARD_HIT_TURN * hardness * wrap_angle(wall_heading - car.heading)
        car.yaw_rate *= 1.0 - HARD_HIT_YAW_LOSS * hardness
