"""Process that enters records forever and prints each driver: `-m tests.replays.record_child DATABASE NAME`."""

import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from racer_viewer.replays.records import Records
from tests.replays.replay_drives import ring_run

ALL = 10**6


def main(path: str, name: str) -> None:
    records = Records(Path(path), kept=ALL)
    for number in count():
        driver = f"{name} {number}"
        assert records.enter(replace(ring_run(320), driver=driver))
        print(driver, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
