"""`racer-viewer stdio`: host a Gymnasium environment on stdin and stdout."""

import argparse

import racer_env.stdio.host


def run(options: argparse.Namespace) -> int:
    """Until the other side closes it. stdout carries the protocol and nothing else."""
    return racer_env.stdio.host.run(options.env_id, options.make_kwargs)
