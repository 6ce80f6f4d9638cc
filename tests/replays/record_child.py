"""A process that enters records without end, and says so after each: `record_child.py DATABASE NAME`."""

import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from replay_drives import ring_run

from racer_viewer.replays.records import Records

EVERY_ONE = 10**6


def main(path: str, name: str) -> None:
    records = Records(Path(path), kept=EVERY_ONE)
    for number in count():
        driver = f"{name} {number}"
        assert records.enter(replace(ring_run(320), driver=driver))
        print(driver, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
