"""`racer-viewer export`: write an agent, or the data of drives, for other programs or other people."""

from __future__ import annotations

import argparse
from pathlib import Path

from racer_env.errors import RacerError
from racer_viewer.cli.options import Subparsers, add_stats_option


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "export",
        help="export an agent as ONNX or as a model to share, or replays as a data set",
        description="Export an agent for other programs or other people, and check that its actions stay the same; or "
        "export replays as data to learn from.",
    )
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a saved model of stable-baselines3 (.zip); for --minari and --npz, one or several replays (.racer)",
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument(
        "--onnx",
        type=Path,
        metavar="DIR",
        help="folder for model.onnx (input obs [1, 14], normalised; output actions [1, 3]) and vecnorm_stats.json",
    )
    target.add_argument(
        "--zip",
        type=Path,
        metavar="FILE",
        help="a model for stable-baselines3 with weights and plain settings only, and FILE_vecnormalize.pkl for "
        "VecNormalize.load",
    )
    target.add_argument(
        "--folded",
        type=Path,
        metavar="FILE",
        help="a model for stable-baselines3 that contains the normalisation and takes raw observations",
    )
    target.add_argument(
        "--hub",
        type=Path,
        metavar="DIR",
        help="a folder as the Hugging Face hub has it: the model, a model card, results.json, config.json and "
        "replay.mp4; nothing is uploaded",
    )
    target.add_argument(
        "--minari",
        type=Path,
        metavar="DIR",
        help="a data set that minari.load_dataset opens, with one episode for each replay; the name of the folder ends "
        "with a version, such as laps-v0",
    )
    target.add_argument(
        "--npz",
        type=Path,
        metavar="FILE",
        help="the same observations, actions, rewards, ends and infos as plain arrays for numpy.load",
    )
    add_stats_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Export the model and print the result of the check; or export the replays."""
    if options.minari is not None or options.npz is not None:
        _write_data(options)
        return 0
    if len(options.files) != 1:
        raise RacerError(f"one model can be exported at a time, not {len(options.files)}")
    options.model = options.files[0]
    if options.zip is not None:
        from racer_viewer.training.export import share

        print(f"{share(options.model, options.zip, options.stats)}: same actions as the original")
    elif options.folded is not None:
        _fold(options)
    elif options.hub is not None:
        _write_hub_folder(options)
    else:
        from racer_viewer.training.export import export

        difference = export(options.model, options.onnx, options.stats)
        print(f"{options.onnx / 'model.onnx'}: the same actions to {difference:.1g}")
    return 0


def _write_data(options: argparse.Namespace) -> None:
    from racer_viewer.replays import load_replay
    from racer_viewer.replays.datasets import write_minari, write_npz
    from racer_viewer.warmup import prepare_engine

    if options.stats is not None:
        raise RacerError("--stats is for models: replays have raw observations")
    replays = [(path, load_replay(path)) for path in options.files]
    prepare_engine()
    if options.npz is not None:
        steps = write_npz(replays, options.npz)
        print(f"{options.npz}: {steps} steps of {len(replays)} drives, for numpy.load")
        return
    dataset = write_minari(replays, options.minari)
    print(f'{options.minari}: {dataset}, for minari.MinariDataset("{(options.minari / "data").as_posix()}")')


def _fold(options: argparse.Namespace) -> None:
    from racer_env.engine import load_circuit
    from racer_viewer.agents import load_agent
    from racer_viewer.training.evaluation import observations_of
    from racer_viewer.training.export import fold
    from racer_viewer.training.hub import circuits_of
    from racer_viewer.warmup import prepare_engine

    agent = load_agent(options.model, options.stats)
    prepare_engine()
    observations = observations_of(agent.act, [load_circuit(name) for name in circuits_of(agent)])
    folding = fold(agent, options.folded, observations)
    print(f"{folding.path}: takes raw observations; the same actions to {folding.difference:.1g}")
    if folding.clipped:
        print(
            f"Normalised inputs are clipped in {folding.clipped:.2%} of the observations of a drive, which the folded "
            "model cannot do: its actions may differ there."
        )


def _write_hub_folder(options: argparse.Namespace) -> None:
    from racer_viewer.agents import load_agent
    from racer_viewer.app.offscreen import film_agent
    from racer_viewer.films.film import FilmProgress
    from racer_viewer.training.hub import REPLAY_FILE, circuits_of, write_hub_folder
    from racer_viewer.warmup import prepare_engine

    agent = load_agent(options.model, options.stats)
    prepare_engine()
    results = write_hub_folder(agent, options.hub)
    with FilmProgress("Filming a lap", known=False):
        film_agent(agent, circuits_of(agent)[0], options.hub / REPLAY_FILE)
    print(f"{options.hub}: mean reward {results.mean_reward:.2f} ± {results.std_reward:.2f}; nothing was uploaded")
