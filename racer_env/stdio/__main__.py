"""`python -m racer_env.stdio --env-id CartPole-v1`: host an environment without the viewer."""

import argparse
import sys

from racer_env.errors import RacerError
from racer_env.stdio.host import run

USAGE_ERROR, INTERRUPTED = 2, 130
"""Exit codes."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m racer_env.stdio",
        description="Host a Gymnasium environment on stdin and stdout, one JSON object per line. Seeds are whole "
        "numbers of any size; seeds and discrete actions may be written as 1 or 1.0.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--env-id", required=True, metavar="ID", help="id of an installed environment, such as CartPole-v1"
    )
    parser.add_argument(
        "--make-kwargs", metavar="JSON", help="JSON object of arguments for gymnasium.make, such as '{\"gravity\": 5}'"
    )
    options = parser.parse_args()
    try:
        return run(options.env_id, options.make_kwargs)
    except RacerError as error:
        print(f"racer_env.stdio: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
