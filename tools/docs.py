"""Check the links of the documents and redraw their pictures.

python tools/docs.py [--check | --pictures]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
"""Start of a link that is not a file."""

_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_INLINE = re.compile(r"\]\(\s*<?([^\s()<>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"\s{0,3}\[[^\]]+\]:\s+<?([^\s<>]+)>?")
_ATTRIBUTE = re.compile(r"<(?:a|img|source|video)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]*)\"")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")
_LINK_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Link:
    """A link in a document: its place and its target."""

    document: Path
    line: int
    target: str


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py docs", description=(__doc__ or "").splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--check", action="store_true", help="check the links only")
    which.add_argument("--pictures", action="store_true", help="redraw the pictures only")
    options = parser.parse_args()
    if not options.check:
        redraw(ROOT)
    return 0 if options.pictures else report(ROOT)


def report(root: Path) -> int:
    """Print every broken link as FILE:LINE; return 1 if there is one."""
    checked = documents(root)
    found = 0
    for document in checked:
        for link, problem in broken_links(document, root):
            found += 1
            print(f"{document.relative_to(root).as_posix()}:{link.line}: {link.target}: {problem}", file=sys.stderr)
    if not found:
        print(f"All links of {len(checked)} documents are valid")
    return 1 if found else 0


def documents(root: Path) -> list[Path]:
    """Return the documents to check: the pages of the project, the docs and the README of the models."""
    known = [
        root / "README.md",
        root / "CONTRIBUTING.md",
        root / "SECURITY.md",
        *sorted((root / "docs").glob("*.md")),
        root / "models" / "README.md",
    ]
    return [each for each in known if each.is_file()]


def broken_links(document: Path, root: Path) -> Iterator[tuple[Link, str]]:
    """Yield links to missing files and headings, each with its problem."""
    for link in links(document):
        if not EXTERNAL.match(link.target):
            problem = problem_of(link, root)
            if problem:
                yield link, problem


def links(document: Path) -> Iterator[Link]:
    """Yield links and pictures of a Markdown file, outside code."""
    for number, line in _prose(document):
        text = _CODE.sub("", line)
        for pattern in (_INLINE, _REFERENCE, _ATTRIBUTE):
            for target in pattern.findall(text):
                yield Link(document, number, target)


def problem_of(link: Link, root: Path) -> str:
    """Return what is wrong with a link to a file or a heading; an empty text if it is valid."""
    path, _, anchor = link.target.partition("#")
    where = (link.document.parent / unquote(path)).resolve() if path else link.document
    if not link.target:
        return "has no target"
    if not where.is_relative_to(root.resolve()):
        return "is outside the repository"
    if not where.exists():
        return "no such file"
    if anchor and where.suffix != ".md":
        return "only Markdown files have headings to link to"
    if anchor and unquote(anchor) not in anchors(where):
        return f"{where.name} has no such heading"
    return ""


def anchors(document: Path) -> set[str]:
    """Return the anchors of a Markdown file: headings as GitHub names them, and HTML ids."""
    found: set[str] = set()
    counts: dict[str, int] = {}
    for _, line in _prose(document):
        found.update(_ANCHOR.findall(_CODE.sub("", line)))
        heading = _HEADING.match(line)
        if heading:
            name = _anchor_of(heading[1])
            before = counts.get(name, 0)
            counts[name] = before + 1
            found.add(f"{name}-{before}" if before else name)
    return found


def _anchor_of(heading: str) -> str:
    """Return GitHub's anchor of a heading: lower case, no punctuation, hyphens for spaces."""
    plain = _LINK_TEXT.sub(r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _prose(document: Path) -> Iterator[tuple[int, str]]:
    """Yield lines outside fenced code, with their numbers."""
    fence = ""
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield number, line


def redraw(root: Path) -> None:
    """Draw the screenshots, which includes a short training run, and the overview of the circuits."""
    subprocess.run([sys.executable, str(root / "tools" / "screenshots.py")], check=True, cwd=root)
    draw_circuits(root / "docs" / "circuits.svg")
    subprocess.run([sys.executable, str(root / "tools" / "engine_drawing.py")], check=True, cwd=root)


def draw_circuits(target: Path) -> None:
    """Draw all bundled circuits on one sheet."""
    from racer_env.engine import circuits, load_circuit
    from racer_viewer.cli.tracks import overview, svg

    target.write_text(overview([svg(load_circuit(circuit)) for circuit in circuits()]), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    sys.exit(main())
