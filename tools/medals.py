"""Derive the medal times of the bundled circuits from the best clean laps of the bundled agents.

    python tools/medals.py          # print the times
    python tools/medals.py --write  # write them to assets/circuits and the authors to models/models.json

The author medal is the best clean lap of any bundled agent; gold, silver and bronze are within 4, 12 and 30 % of it.
"""

import argparse
import json
import re
import warnings
from pathlib import Path

from racer_env.engine import Medals, circuits, load_circuit
from racer_viewer.agents import bundled_models, load_agent
from racer_viewer.modes.ladder import agent_drive, medals_for
from racer_viewer.replays import trace_replay

ROOT = Path(__file__).parents[1]


def best_agent(circuit_id: str) -> tuple[str, int]:
    """Return the bundled model with the best clean lap on a circuit, and that lap [ticks]."""
    track, laps = load_circuit(circuit_id), []
    for path in bundled_models():
        best = trace_replay(agent_drive(load_agent(path), track), track).best_lap
        if best is not None:
            laps.append((best.ticks, path.stem))
    ticks, name = min(laps)
    return name, ticks


def write(circuit_id: str, medals: Medals) -> None:
    """Replace the medals in a circuit file."""
    path = ROOT / "assets" / "circuits" / f"{circuit_id}.json"
    fields = ("author", "gold", "silver", "bronze")
    times = ", ".join(f'"{name}": {getattr(medals, name)}' for name in fields)
    text = re.sub(r'"medals": \{[^}]*\}', f'"medals": {{{times}}}', path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


def write_authors(authors: dict[str, str]) -> None:
    """Note in models.json on which circuits each model is the author."""
    path = ROOT / "models" / "models.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    for name, each in facts.items():
        each.pop("author_of", None)
        if own := [circuit for circuit, author in authors.items() if author == name]:
            each["author_of"] = own
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in facts.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the times to the circuit files")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    authors = {}
    for circuit in circuits():
        authors[circuit.id], ticks = best_agent(circuit.id)
        medals = medals_for(ticks)
        print(f"{circuit.id}  {authors[circuit.id]:24}{medals}")
        if options.write:
            write(circuit.id, medals)
    if options.write:
        write_authors(authors)


if __name__ == "__main__":
    main()
