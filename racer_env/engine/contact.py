"""Walls: where a moving car meets one, and what that does to it."""

import math

from racer_env.engine.car import wrap_angle
from racer_env.engine.compiled import Compiled, part
from racer_env.engine.tables import WALL_NEAR, cell_at, squared_distance

COLLISION_RADIUS = 1.0
SWEEP_STEP = 0.75
"""A longer move is tested at points about this far apart."""
WALL_FRICTION = 0.3
"""Lost of the speed along a wall."""
BOUNCE = 0.08
"""Part of the speed with which a wall throws the car back."""
GLANCE_GAP, CRASH_GAP = 0.5, 0.8
"""Room left between car and wall after touching one on the way out or along, and after hitting it."""
HARD_HIT = 0.5
"""From this severity (0 along the wall, 1 straight at it) on, a hit turns the car along the wall."""
HARD_HIT_TURN, HARD_HIT_YAW_LOSS = 0.4, 0.5
NO_DIRECTION, NO_SPEED = 1e-10, 1e-6


@part
def meet_walls(track: Compiled, car: Compiled, old_x: float, old_y: float) -> None:
    """Stop the car's move at the first wall in its way, and set whether it ends near one."""
    if not _open_around(track.cells[cell_at(track.frame[0], old_x, old_y)]):
        _sweep(track, car, old_x, old_y)
    wall, square = nearest_wall(track, car.x, car.y)
    if square < COLLISION_RADIUS**2:
        _hit(track.segments[wall], car)
        wall, square = nearest_wall(track, car.x, car.y)
    car.wall_contact = square < WALL_NEAR**2


@part
def _open_around(cell: Compiled) -> bool:
    """Whether no wall passes through the cell and the eight around it: farther off than a tick can carry the car."""
    return min(cell.jump[0], cell.jump[1], cell.jump[2], cell.jump[3]) >= 2


@part
def nearest_wall(track: Compiled, x: float, y: float) -> tuple[int, float]:
    """The nearest wall segment (the inner wall's on a tie) and its squared distance, if within WALL_NEAR."""
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
    """Move the car back to the first point of a long move, its end apart, that touches a wall."""
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
    """Push the car out of a wall; where it was moving into it, slide along, lose speed and turn."""
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
