"""`racer-viewer bench SUBJECT`: measure speed on this machine."""

from __future__ import annotations

import argparse

from racer_viewer.cli.options import Subparsers, add_json_option, add_token_options, chosen_token, positive
from racer_viewer.cli.run_options import add_run_options, run_config

MAX_SIDE = 8192
"""Maximum width and height of a window [px]."""


def window_size(text: str) -> tuple[int, int]:
    """Return a window size such as 1920x1080 [px]."""
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) != 2 or not all(side.isdecimal() and 0 < int(side[:6]) <= MAX_SIDE for side in sides):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; example: 1920x1080")
    return int(sides[0]), int(sides[1])


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "bench", help="measure speed on this machine", description="Measure speed on this machine."
    )
    subjects = parser.add_subparsers(title="subjects", metavar="SUBJECT", required=True)
    for add in (_add_engine, _add_bridge, _add_train, _add_render, _add_start, _add_learn, _add_games, _add_rewards):
        add(subjects)


def _add_engine(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "engine",
        help="steps per second of the simulation",
        description="Measure full steps per second (observation, rewards, auto-reset) against CartPole-v1.",
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds instead of about a minute, and noisier")
    add_json_option(parser)
    parser.set_defaults(run=_run_engine)


def _run_engine(options: argparse.Namespace) -> int:
    from racer_viewer.bench.engine import run

    return run(options.quick, options.json)


def _add_rewards(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "rewards",
        help="time to score an hour of replays under ten rewards",
        description="Measure the time to simulate an hour of replays once and to pay ten rewards with terms for it.",
    )
    parser.add_argument(
        "--rounds", type=positive(int), default=5, metavar="N", help="measurements (default: %(default)s)"
    )
    add_json_option(parser)
    parser.set_defaults(run=_run_rewards)


def _run_rewards(options: argparse.Namespace) -> int:
    from racer_viewer.bench.rewards import run

    return run(options.rounds, options.json)


def _add_bridge(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "bridge",
        help="cost of a step over each kind of bridge",
        description="Measure steps per second in this process, over WebSocket and in a batch, against raw TCP.",
    )
    parser.add_argument(
        "--steps", type=positive(int), default=10_000, metavar="N", help="steps of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--warmup", type=positive(int), default=200, metavar="N", help="steps before measuring (default: %(default)s)"
    )
    parser.add_argument(
        "--target",
        type=positive(float),
        metavar="S",
        help="JSON steps per second over WebSocket; exits with 1 if fewer are reached",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="a running bridge server to measure (default: start one)")
    where.add_argument("--uvloop", action="store_true", help="start the bridge server with uvloop")
    add_token_options(parser, "token of the server at --url")
    add_json_option(parser)
    parser.set_defaults(run=_run_bridge)


def _run_bridge(options: argparse.Namespace) -> int:
    from racer_viewer.bench.bridge import run

    token = chosen_token(options)
    return run(options.steps, options.warmup, options.target, options.url, token, options.uvloop, as_json=options.json)


def _add_train(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "train",
        help="training speed of PPO with each engine",
        description="Measure steps per second of whole PPO runs with the native engine, on 1 and 2 threads, against "
        "stable-baselines3 in the same process, and what gathering and metrics cost.",
    )
    parser.add_argument(
        "--preset", choices=("quick", "champion"), default="quick", help="settings of the runs (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=positive(int), default=9, metavar="N", help="rollouts of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--preview", action="store_true", help="measure instead what the live preview costs a training run"
    )
    parser.add_argument("--engine", choices=("ray",), help="ray: compare it with Ray on 1 and 2 runners instead")
    add_json_option(parser)
    parser.set_defaults(run=_run_train)


def _run_train(options: argparse.Namespace) -> int:
    if options.preview and options.engine == "ray":
        from racer_env.errors import RacerError

        raise RacerError("--preview and --engine ray are two measurements: choose one")
    if options.preview:
        from racer_viewer.bench.preview import run as measure_preview

        return measure_preview(options.rounds, options.json)
    if options.engine == "ray":
        from racer_viewer.optional import RAY

        RAY.require()
        from racer_viewer.bench.ray import run as measure_ray

        return measure_ray(options.rounds, options.json)
    from racer_viewer.bench.train import run

    return run(options.preset, options.rounds, options.json)


def _add_render(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "render",
        help="drawing time of a frame",
        description="Draw races of 1, 8, 64 and 256 cars on the shortest and the longest circuit at 60 frames per "
        "second, and measure drawing time by layer and late frames. Exits with 1 if 8 cars take too long.",
    )
    parser.add_argument(
        "--seconds",
        type=positive(float),
        default=60.0,
        metavar="S",
        help="time for 8 cars; the others take a sixth of it (default: %(default)g)",
    )
    parser.add_argument(
        "--size",
        type=window_size,
        nargs="+",
        default=[(1280, 720)],
        metavar="WxH",
        help="sizes of the window (default: 1280x720)",
    )
    parser.add_argument(
        "--renderer",
        choices=("auto", "software", "gpu"),
        default="auto",
        help="way in which pictures reach the window (default: %(default)s)",
    )
    parser.add_argument(
        "--resolution",
        choices=("auto", "full", "half"),
        default="auto",
        help="resolution of the picture, or half for the ground (default: %(default)s)",
    )
    parser.add_argument(
        "--camera",
        choices=("follow", "turn", "whole"),
        nargs="+",
        default=["follow"],
        help="cameras: north up, turning with the car, whole circuit (default: follow)",
    )
    add_json_option(parser)
    parser.set_defaults(run=_run_render)


def _run_render(options: argparse.Namespace) -> int:
    from racer_viewer.bench.render import run

    return run(options.seconds, options.json, options.size, options.renderer, options.resolution, options.camera)


def _add_start(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "start",
        help="time until the menu is on screen",
        description="Measure the time from the start of the process to the first frame, against a bare window.",
    )
    parser.add_argument("--rounds", type=positive(int), default=9, metavar="N", help="starts (default: %(default)s)")
    add_json_option(parser)
    parser.set_defaults(run=_run_start)


def _run_start(options: argparse.Namespace) -> int:
    from racer_viewer.bench.start import run

    return run(options.rounds, options.json)


def _add_learn(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "learn",
        help="time to learn a circuit",
        description="Train from scratch with several seeds, and measure seconds and steps to the first clean lap and "
        "to a target lap time. Exits with 1 if any seed misses the target.",
    )
    parser.add_argument(
        "--seeds", type=positive(int), default=5, metavar="N", help="number of seeds (default: %(default)s)"
    )
    parser.add_argument(
        "--pace", type=positive(float), metavar="S", help="target lap time, flying (default: that of existing agents)"
    )
    parser.add_argument(
        "--wall",
        action="store_true",
        help="measure instead the time from the click on Start in the window to the first clean lap; exits with 1 if "
        "it takes too long",
    )
    add_json_option(parser)
    add_run_options(parser)
    parser.set_defaults(run=_run_learn)


def _run_learn(options: argparse.Namespace) -> int:
    config = run_config(options)
    from racer_viewer.bench.learn import run, run_wall

    if options.wall:
        return run_wall(config, options.seeds, options.json)
    return run(config, options.seeds, options.pace, options.json)


def _add_games(subjects: Subparsers) -> None:
    parser = subjects.add_parser(
        "games",
        help="response time of games over TCP",
        description="Measure state requests per second and their latency, with and without frames, for 1 and 6 games, "
        "and how regularly the games tick; against raw TCP.",
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=5.0, metavar="S", help="time for each kind (default: %(default)g)"
    )
    add_json_option(parser)
    parser.set_defaults(run=_run_games)


def _run_games(options: argparse.Namespace) -> int:
    from racer_viewer.bench.games import run

    return run(options.seconds, options.json)
