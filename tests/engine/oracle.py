"""Reference implementation of the engine in plain Python: every formula, by brute force, without regard for speed.

It shares no code with `racer_env`, so that an error there cannot hide here. Every search looks at
everything: all walls for a contact or a ray, all coarse samples for the nearest centreline point.
Units are game units, seconds and radians; y points up.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float]

DT = 1.0 / 60.0

MASS = 800.0
WHEELBASE = 1.5
COLLISION_RADIUS = 1.0
MAX_SPEED = 160.0
ENGINE_FORCE = 55_000.0
BRAKE_FORCE = 50_000.0
DRAG = 2.0
ROLLING_RESISTANCE = 150.0
MAX_WHEEL_ANGLE = 0.37
STEERING_FADE = 0.025
WALL_FRICTION = 0.3
STEER_RATE, THROTTLE_RATE, BRAKE_RATE = 24.0, 6.0, 10.0
TRACTION_AT_REST, TRACTION_AT_MAX_SPEED = 0.85, 0.55

ROAD, RUNOFF, SHOULDER = 0, 1, 2
GRIP = {ROAD: 1.0, RUNOFF: 0.5, SHOULDER: 0.7}
SPEED_FACTOR = {ROAD: 1.0, RUNOFF: 0.4, SHOULDER: 0.85}
SHOULDER_WIDTH = 24.0

CHORDS_PER_SEGMENT = 20
WALL_OFFSET = 30.0
MINIMUM_WALL = 4.0
SEARCH_ROUNDS = 16
SWEEP_STEP = 0.75
WALL_NEAR = 2.0

RAY_ANGLES = [math.radians(-90.0 + 22.5 * i) for i in range(9)]
RAY_RANGE = 200.0

DEFAULT_WEIGHTS = {
    "progress": 1.0,
    "speedBonus": 0.0,
    "wallPenalty": -0.002,
    "offTrackPenalty": -0.001,
    "backwardPenalty": 0.0,
    "stillnessPenalty": -0.001,
    "stillnessSpeedThreshold": 2.0,
}
DEFAULT_EPISODE = {"maxSteps": 3000, "stillnessTimeoutTicks": 180}


def wrapped(angle: float) -> float:
    """Return the same angle within ±π."""
    return math.remainder(angle, 2.0 * math.pi)


def clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


def box_filter(values: Sequence[float], reach: int, passes: int) -> list[float]:
    """Return the mean over a sample and `reach` neighbours to each side, circular, in several passes."""
    count = len(values)
    for _ in range(passes):
        values = [
            sum(values[(i + k) % count] for k in range(-reach, reach + 1)) / (2 * reach + 1) for i in range(count)
        ]
    return list(values)


def enclosed_area(line: Sequence[Point]) -> float:
    """Return the unsigned area inside an open polyline."""
    doubled = sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(line, [*line[1:], line[0]], strict=True))
    return abs(doubled) / 2.0


class Spline:
    """Closed centripetal Catmull-Rom spline in Hermite form, parametrised by arc length."""

    def __init__(self, control_points: Sequence[Sequence[float]]) -> None:
        points = [(float(x), float(y)) for x, y, _ in control_points]
        self.count = len(points)
        self.half_widths = [float(row[2]) for row in control_points]
        self.segments = [
            self._segment(*(points[(i + k) % self.count] for k in (-1, 0, 1, 2))) for i in range(self.count)
        ]
        self.arcs = [0.0]
        for i in range(self.count * CHORDS_PER_SEGMENT):
            chord = math.dist(self.point(i / CHORDS_PER_SEGMENT), self.point((i + 1) / CHORDS_PER_SEGMENT))
            self.arcs.append(self.arcs[-1] + chord)
        self.length = self.arcs[-1]
        self._arcs = np.array(self.arcs)

    @staticmethod
    def _segment(p0: Point, p1: Point, p2: Point, p3: Point) -> list[tuple[float, float, float, float]]:
        """Return start, start slope, end and end slope, for x and for y."""

        def knot(a: Point, b: Point) -> float:
            distance = math.dist(a, b) ** 0.5
            return 1.0 if distance < 1e-10 else distance

        k01, k12, k23 = knot(p0, p1), knot(p1, p2), knot(p2, p3)
        return [
            (
                p1[i],
                k12 * ((p1[i] - p0[i]) / k01 - (p2[i] - p0[i]) / (k01 + k12) + (p2[i] - p1[i]) / k12),
                p2[i],
                k12 * ((p2[i] - p1[i]) / k12 - (p3[i] - p1[i]) / (k12 + k23) + (p3[i] - p2[i]) / k23),
            )
            for i in (0, 1)
        ]

    def _segment_at(self, parameter: float) -> tuple[list[tuple[float, float, float, float]], float]:
        whole = math.floor(parameter)
        return self.segments[whole % self.count], parameter - whole

    def point(self, parameter: float) -> Point:
        """Return the point at parameter segment + t."""
        segment, t = self._segment_at(parameter)
        x, y = (
            (2 * t**3 - 3 * t**2 + 1) * p1
            + (t**3 - 2 * t**2 + t) * m1
            + (-2 * t**3 + 3 * t**2) * p2
            + (t**3 - t**2) * m2
            for p1, m1, p2, m2 in segment
        )
        return x, y

    def direction(self, parameter: float) -> Point:
        """Return the unit tangent at parameter segment + t."""
        segment, t = self._segment_at(parameter)
        x, y = (
            (6 * t**2 - 6 * t) * p1 + (3 * t**2 - 4 * t + 1) * m1 + (-6 * t**2 + 6 * t) * p2 + (3 * t**2 - 2 * t) * m2
            for p1, m1, p2, m2 in segment
        )
        size = math.hypot(x, y)
        return x / size, y / size

    def wrap(self, distance: float) -> float:
        """Return the same distance along the lap within [0, length)."""
        wrapped_distance = distance % self.length
        return 0.0 if wrapped_distance >= self.length else wrapped_distance

    def parameter(self, distance: float) -> float:
        distance = self.wrap(distance)
        i = int(np.searchsorted(self._arcs, distance, side="right")) - 1
        return (i + (distance - self.arcs[i]) / (self.arcs[i + 1] - self.arcs[i])) / CHORDS_PER_SEGMENT

    def point_at(self, distance: float) -> Point:
        return self.point(self.parameter(distance))

    def direction_at(self, distance: float) -> Point:
        return self.direction(self.parameter(distance))

    def half_width_at(self, distance: float) -> float:
        """Return half the road width, linear in the distance between the control points."""
        segment = math.floor(self.parameter(distance))
        start, end = self.arcs[segment * CHORDS_PER_SEGMENT], self.arcs[(segment + 1) * CHORDS_PER_SEGMENT]
        here, there = self.half_widths[segment], self.half_widths[(segment + 1) % self.count]
        return here + (there - here) * (self.wrap(distance) - start) / (end - start)


class OracleTrack:
    """A track built from rows of x, y, half-width.

    inner, outer, inner_road, outer_road: closed lines. gates: rows of inner end xy, outer end xy, centre xy, direction
    xy, arc. start: x, y, heading.
    """

    def __init__(self, control_points: Sequence[Sequence[float]], gate_count: int = 30) -> None:
        self.spline = Spline(control_points)
        self.length = self.spline.length
        self._build_lines(max(200, 12 * len(control_points)))
        self.gates = np.array([self._gate(i, gate_count) for i in range(gate_count)])
        x, y = self.spline.point_at(0.0)
        dx, dy = self.spline.direction_at(0.0)
        self.start = (x, y, math.atan2(dy, dx))

        self.wall_starts = np.concatenate([self.inner[:-1], self.outer[:-1]])
        self.wall_ways = np.concatenate([np.diff(self.inner, axis=0), np.diff(self.outer, axis=0)])
        coarse = max(100, math.ceil(self.length / 2.0))
        self.coarse_spacing = self.length / coarse
        self.coarse_arcs = [i * self.length / coarse for i in range(coarse)]
        self.coarse_points = np.array([self.spline.point_at(arc) for arc in self.coarse_arcs])

    def _build_lines(self, samples: int) -> None:
        distances = [i * self.length / samples for i in range(samples)]
        walls = [self.spline.half_width_at(distance) + WALL_OFFSET for distance in distances]
        reductions: dict[str, list[float]] = {"left": [], "right": []}
        for distance, wall in zip(distances, walls, strict=True):
            radius, inner_side = self._bend(distance, self.length / samples)
            reduction = (
                wall - min(wall, max(MINIMUM_WALL, radius - MINIMUM_WALL)) if radius < wall + MINIMUM_WALL else 0.0
            )
            reductions["left"].append(reduction if inner_side == "left" else 0.0)
            reductions["right"].append(reduction if inner_side == "right" else 0.0)

        lines = {}
        for side, sign in (("left", 1.0), ("right", -1.0)):
            smooth = box_filter(reductions[side], 10, 3)
            wall_distances = [max(MINIMUM_WALL, wall - less) for wall, less in zip(walls, smooth, strict=True)]
            road_distances = [
                min(self.spline.half_width_at(distance), wall_distance - 2.0)
                for distance, wall_distance in zip(distances, wall_distances, strict=True)
            ]
            lines[side] = self._offset_line(distances, [sign * d for d in wall_distances])
            lines[side + " road"] = self._offset_line(distances, [sign * d for d in road_distances])

        inner, outer = "left", "right"
        if enclosed_area(lines[outer]) < enclosed_area(lines[inner]):
            inner, outer = outer, inner
        closed = {name: np.array([*line, line[0]]) for name, line in lines.items()}
        self.inner, self.outer = closed[inner], closed[outer]
        self.inner_road, self.outer_road = closed[inner + " road"], closed[outer + " road"]

    def _bend(self, distance: float, step: float) -> tuple[float, str]:
        """Return the radius of the bend at a distance, and the side of its inside."""
        ax, ay = self.spline.direction_at(distance - step / 2.0)
        bx, by = self.spline.direction_at(distance + step / 2.0)
        angle = math.acos(clamp(ax * bx + ay * by, -1.0, 1.0))
        radius = math.inf if angle / step < 1e-8 else step / angle
        return radius, "left" if ax * by - ay * bx >= 0.0 else "right"

    def _offset_line(self, distances: Sequence[float], offsets: Sequence[float]) -> list[Point]:
        """Return the centreline moved sideways (left if positive) and smoothed."""
        xs, ys = [], []
        for distance, offset in zip(distances, offsets, strict=True):
            x, y = self.spline.point_at(distance)
            dx, dy = self.spline.direction_at(distance)
            xs.append(x - dy * offset)
            ys.append(y + dx * offset)
        return list(zip(box_filter(xs, 4, 2), box_filter(ys, 4, 2), strict=True))

    def _gate(self, number: int, gate_count: int) -> list[float]:
        samples = len(self.inner) - 1
        arc = number * self.length / gate_count
        centre = self.spline.point_at(arc)
        middle, reach = math.floor(number * samples / gate_count + 0.5), max(5, math.ceil(samples / gate_count))
        row: list[float] = []
        for wall in (self.inner, self.outer):
            nearby = [wall[i % samples] for i in range(middle - reach, middle + reach + 1)]
            row.extend(min(nearby, key=lambda point: math.dist(point, centre)))
        return [*row, *centre, *self.spline.direction_at(arc), arc]

    def locate(self, x: float, y: float) -> tuple[float, float]:
        """Return the distance to the centreline and the arc there. The finite search is part of the rules."""
        coarse = int(np.argmin(np.sum((self.coarse_points - (x, y)) ** 2, axis=1)))
        best_arc = self.coarse_arcs[coarse]
        best = math.dist(self.spline.point_at(best_arc), (x, y))
        low, high = best_arc - self.coarse_spacing, best_arc + self.coarse_spacing
        for _ in range(SEARCH_ROUNDS):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            distance_a, distance_b = (math.dist(self.spline.point_at(arc), (x, y)) for arc in (a, b))
            if distance_a < distance_b:
                high, arc, distance = b, a, distance_a
            else:
                low, arc, distance = a, b, distance_b
            if distance < best:
                best_arc, best = arc, distance
        return best, self.spline.wrap(best_arc)

    def surface(self, x: float, y: float) -> int:
        distance, arc = self.locate(x, y)
        half_width = self.spline.half_width_at(arc)
        if distance <= half_width:
            return ROAD
        return SHOULDER if distance <= half_width + SHOULDER_WIDTH else RUNOFF

    def nearest_wall_point(self, x: float, y: float) -> Point:
        """Return the nearest wall point; on a tie that of the inner wall, whose segments come first."""
        along = np.sum(((x, y) - self.wall_starts) * self.wall_ways, axis=1) / np.sum(self.wall_ways**2, axis=1)
        points = self.wall_starts + np.clip(along, 0.0, 1.0)[:, None] * self.wall_ways
        nearest = points[np.argmin(np.sum((points - (x, y)) ** 2, axis=1))]
        return float(nearest[0]), float(nearest[1])

    def wall_distance(self, x: float, y: float) -> float:
        return math.dist(self.nearest_wall_point(x, y), (x, y))

    def ray(self, x: float, y: float, angle: float) -> float:
        """Return the distance to the nearest wall segment in this direction, at most RAY_RANGE."""
        dx, dy = math.cos(angle), math.sin(angle)
        ox, oy = (self.wall_starts - (x, y)).T
        sx, sy = self.wall_ways.T
        cross = dx * sy - dy * sx
        with np.errstate(divide="ignore", invalid="ignore"):
            along_ray, along_wall = (ox * sy - oy * sx) / cross, (ox * dy - oy * dx) / cross
            met = (np.abs(cross) >= 1e-10) & (along_ray >= 0.0) & (along_wall >= 0.0) & (along_wall <= 1.0)
        return min(RAY_RANGE, float(np.min(along_ray[met], initial=RAY_RANGE)))


class OracleCar:
    """One car on a track. Attributes have the names of the columns of the recorded runs."""

    def __init__(self, track: OracleTrack, config: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        config = config or {}
        self.track = track
        self.weights = {**DEFAULT_WEIGHTS, **config.get("weights", {})}
        self.episode = {**DEFAULT_EPISODE, **config.get("episode", {})}
        self.reset()

    def reset(self) -> None:
        """Start an episode from a standing start, with gate 0 already crossed."""
        self.place(*self.track.start)

    def place(
        self,
        x: float,
        y: float,
        heading: float,
        vx: float = 0.0,
        vy: float = 0.0,
        speed: float = 0.0,
        steer: float = 0.0,
        throttle: float = 0.0,
        brake: float = 0.0,
    ) -> None:
        """Start an episode in this state."""
        self.x, self.y, self.heading = x, y, heading
        self.vx, self.vy, self.speed = vx, vy, speed
        self.steer, self.throttle, self.brake = steer, throttle, brake
        self.yaw_rate = self.slip_angle = 0.0
        self.lap, self.checkpoint, self.lap_ticks = 1, 0, 0
        self.steps = self.still_ticks = 0
        self.components = [0.0] * 6
        self.reward = 0.0
        self.wall_contact = self.terminated = self.truncated = False
        self.surface = self.track.surface(x, y)
        self._observe()

    def step(self, action: ArrayLike) -> None:
        """Run one tick with a raw action of steer, throttle, brake."""
        steer, throttle, brake = (float(value) for value in np.asarray(action, dtype=np.float64))
        if not all(math.isfinite(value) for value in (steer, throttle, brake)):
            raise ValueError("an action is three finite numbers")
        old_x, old_y = self.x, self.y
        _, old_arc = self.track.locate(old_x, old_y)
        self.surface = self.track.surface(old_x, old_y)

        speed_before = self.speed
        self._follow_inputs(clamp(steer, -1.0, 1.0), clamp(throttle, 0.0, 1.0), clamp(brake, 0.0, 1.0))
        self._turn(speed_before)
        self._change_velocity(speed_before)
        self.x += self.vx * DT
        self.y += self.vy * DT
        self._meet_walls(old_x, old_y)
        self.surface = self.track.surface(self.x, self.y)
        self._count_gates(old_x, old_y)
        self._pay_rewards(old_arc)
        self._observe()

    def _follow_inputs(self, steer: float, throttle: float, brake: float) -> None:
        self.steer += (steer - self.steer) * (1.0 - math.exp(-STEER_RATE * DT))
        self.throttle += (throttle - self.throttle) * (1.0 - math.exp(-THROTTLE_RATE * DT))
        self.brake += (brake - self.brake) * (1.0 - math.exp(-BRAKE_RATE * DT))

    def _turn(self, speed: float) -> None:
        wheel_angle = -self.steer * MAX_WHEEL_ANGLE / (1.0 + STEERING_FADE * speed)
        old = self.heading
        if speed > 1.0:
            half, rolled = WHEELBASE / 2.0, speed * DT
            rear_x, rear_y = (rolled - half) * math.cos(old), (rolled - half) * math.sin(old)
            front_x = half * math.cos(old) + rolled * math.cos(old + wheel_angle)
            front_y = half * math.sin(old) + rolled * math.sin(old + wheel_angle)
            self.heading = math.atan2(front_y - rear_y, front_x - rear_x)
        else:
            self.heading = old + wheel_angle * speed * DT
        self.yaw_rate = wrapped(self.heading - old) / DT

    def _change_velocity(self, speed: float) -> None:
        """Apply engine, brake and resistance along the new heading, and grip across it."""
        grip, factor = GRIP[self.surface], SPEED_FACTOR[self.surface]
        resistance = self.brake * BRAKE_FORCE + DRAG * speed**2 / factor + ROLLING_RESISTANCE
        force = self.throttle * ENGINE_FORCE * factor
        if speed > 1.0:
            force -= resistance
        elif speed > 0.01:
            force -= min(resistance, MASS * speed / DT)
        forward = clamp(speed + force / MASS * DT, 0.0, MAX_SPEED)

        cos, sin = math.cos(self.heading), math.sin(self.heading)
        traction = TRACTION_AT_REST - (TRACTION_AT_REST - TRACTION_AT_MAX_SPEED) * min(speed / MAX_SPEED, 1.0)
        sideways = (-self.vx * sin + self.vy * cos) * (1.0 - grip * traction)
        self.vx, self.vy = forward * cos - sideways * sin, forward * sin + sideways * cos
        self.speed = math.hypot(self.vx, self.vy)
        if self.speed > MAX_SPEED:
            self.vx, self.vy = self.vx * MAX_SPEED / self.speed, self.vy * MAX_SPEED / self.speed
            self.speed = MAX_SPEED
        if self.vx * cos + self.vy * sin < 0.0 and self.speed < 1.0:
            self.vx = self.vy = self.speed = 0.0
        self.slip_angle = abs(wrapped(math.atan2(self.vy, self.vx) - self.heading)) if self.speed > 1.0 else 0.0

    def _meet_walls(self, old_x: float, old_y: float) -> None:
        moved_x, moved_y = self.x - old_x, self.y - old_y
        moved = math.hypot(moved_x, moved_y)
        points = [(self.x, self.y)]
        if moved > SWEEP_STEP:
            parts = math.ceil(moved / SWEEP_STEP)
            points = [(old_x + moved_x * i / parts, old_y + moved_y * i / parts) for i in range(1, parts)] + points
        for x, y in points:
            if self.track.wall_distance(x, y) < COLLISION_RADIUS:
                self.x, self.y = x, y
                self._touch(*self.track.nearest_wall_point(x, y))
                break
        self.wall_contact = self.track.wall_distance(self.x, self.y) < WALL_NEAR

    def _touch(self, wall_x: float, wall_y: float) -> None:
        """Push the car off the wall; if it was moving into the wall, slow it down and, on a hard hit, turn it."""
        distance = math.dist((wall_x, wall_y), (self.x, self.y))
        nx, ny = ((self.x - wall_x) / distance, (self.y - wall_y) / distance) if distance >= 1e-10 else (0.0, 1.0)
        depth = COLLISION_RADIUS - distance
        outward = self.vx * nx + self.vy * ny
        if outward >= 0.0:
            self.x += nx * (depth + 0.5)
            self.y += ny * (depth + 0.5)
            return
        tx, ty = self.vx - outward * nx, self.vy - outward * ny
        ratio = math.hypot(tx, ty) / self.speed if self.speed > 1e-6 else 0.0
        severity = math.acos(clamp(ratio, 0.0, 1.0)) / (math.pi / 2.0)
        bounce = 0.08 * self.speed
        self.vx, self.vy = (1.0 - WALL_FRICTION) * tx + bounce * nx, (1.0 - WALL_FRICTION) * ty + bounce * ny
        self.speed = math.hypot(self.vx, self.vy)
        self.x += nx * (depth + 0.8)
        self.y += ny * (depth + 0.8)
        if severity > 0.5:
            hardness = 2.0 * (severity - 0.5)
            wall_dx, wall_dy = -ny, nx
            if tx * wall_dx + ty * wall_dy < 0.0:
                wall_dx, wall_dy = -wall_dx, -wall_dy
            self.heading += 0.4 * hardness * wrapped(math.atan2(wall_dy, wall_dx) - self.heading)
            self.yaw_rate *= 1.0 - 0.5 * hardness

    def _count_gates(self, old_x: float, old_y: float) -> None:
        self.lap_ticks += 1
        following = (self.checkpoint + 1) % len(self.track.gates)
        if self._crossed(self.track.gates[following], old_x, old_y):
            self.checkpoint = following
            if following == 0:
                self.lap += 1
                self.lap_ticks = 0

    def _crossed(self, gate: Floats, old_x: float, old_y: float) -> bool:
        inner_x, inner_y, outer_x, outer_y, _, _, along_x, along_y, _ = gate
        move_x, move_y = self.x - old_x, self.y - old_y
        gate_x, gate_y = outer_x - inner_x, outer_y - inner_y
        cross = move_x * gate_y - move_y * gate_x
        if abs(cross) < 1e-10:
            return False
        to_x, to_y = inner_x - old_x, inner_y - old_y
        on_move, on_gate = (to_x * gate_y - to_y * gate_x) / cross, (to_x * move_y - to_y * move_x) / cross
        forward = move_x * along_x + move_y * along_y > 0.0
        return bool(0.0 <= on_move <= 1.0 and 0.0 <= on_gate <= 1.0 and forward)

    def _pay_rewards(self, old_arc: float) -> None:
        """Set the reward of this tick and whether the episode is over."""
        length, weights = self.track.length, self.weights
        _, arc = self.track.locate(self.x, self.y)
        gained = arc - old_arc
        if abs(gained) > length / 2.0:
            gained -= math.copysign(length, gained)
        still = self.speed < weights["stillnessSpeedThreshold"]
        self.components = [
            gained / length * weights["progress"],
            self.speed / MAX_SPEED * weights["speedBonus"],
            weights["wallPenalty"] if self.wall_contact else 0.0,
            weights["offTrackPenalty"] if self.surface != ROAD else 0.0,
            weights["backwardPenalty"] if gained < 0.0 else 0.0,
            weights["stillnessPenalty"] if still else 0.0,
        ]
        self.reward = sum(self.components)
        self.steps += 1
        self.still_ticks = self.still_ticks + 1 if still else 0
        self.terminated = self.still_ticks >= self.episode["stillnessTimeoutTicks"]
        self.truncated = self.steps >= self.episode["maxSteps"]

    def _observe(self) -> None:
        self.centre_distance, self.arc = self.track.locate(self.x, self.y)
        self.rays = np.array([self.track.ray(self.x, self.y, self.heading + angle) for angle in RAY_ANGLES])
        self.observation = np.array([
            *(self.rays / RAY_RANGE),
            self.speed / MAX_SPEED,
            clamp(self.yaw_rate / 5.0, -1.0, 1.0),
            self.steer,
            self.arc / self.track.length,
            min(1.0, self.centre_distance / 80.0),
        ])  # fmt: skip
