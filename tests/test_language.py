"""Plain English in code: how docstrings open, and words that are not used for names or in prose."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from racer_env.errors import in_one_line, os_reason

ROOT = Path(__file__).parents[1]
FOLDERS = ("racer_env", "racer_viewer", "tests", "tools", "desktop")
FILES = [ROOT / "run.py", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]

OPENINGS = [
    "Of", "That", "By", "Until", "What", "How", "Whether", "Where", "Who", "Whom", "Whose", "Which", "When", "While",
    "Why", "For", "From", "With", "Without", "As", "In", "On", "At", "To", "Into", "If", "Those",
]  # fmt: skip
"""Words that no docstring opens with: a verb in the imperative or a noun comes first."""
OPENING = re.compile(rf"\s*({'|'.join(OPENINGS)})\b")

RETIRED = [
    "story", "narrator", "sights", "spotter", "told", "tell", "tells", "leash", "greeting", "conductor", "arcade",
    "guest", "guests", "fate", "moments", "judge", "judged", "overseer", "witness", "gist", "farewell",
]  # fmt: skip
"""Words that stood for something else: event log, callback, monitor, session, worker, report, ..."""
RETIRED_IN_PROSE = re.compile(rf"(?<![A-Za-z])({'|'.join(RETIRED)})(?![A-Za-z])", re.IGNORECASE)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every docstring, those of attributes and constants included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every name that is given: to a class, function, parameter, variable or attribute."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def words(name: str) -> set[str]:
    """Return the words of a name in snake or camel case, in small letters."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@pytest.mark.parametrize(
    ("text", "opens_badly"),
    [("Of all cars together.", True), ("That it waits.", True), ("Offset [m].", False), ("Return the lap.", False)],
)
def test_a_docstring_that_opens_with_a_preposition_is_found(text: str, opens_badly: bool) -> None:
    assert bool(OPENING.match(text)) == opens_badly


def test_retired_words_are_found_in_names_and_in_prose() -> None:
    assert words("RunStoryReader") & set(RETIRED) == {"story"}
    assert words("history_of_STORAGE") & set(RETIRED) == set()
    assert RETIRED_IN_PROSE.search("the story of a run")
    assert not RETIRED_IN_PROSE.search("the history of a run")


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.strip().splitlines()[0]}"
        for path in FILES
        for line, text in docstrings(parsed(path))
        if OPENING.match(text)
    ]
    assert found == []


def test_retired_words_are_not_used() -> None:
    found = []
    for path in FILES:
        text = path.read_text(encoding="utf-8").lower()
        if path == Path(__file__) or not any(word in text for word in RETIRED):
            continue
        tree, where = parsed(path), path.relative_to(ROOT)
        found += [f"{where}:{line}: {name}" for line, name in names(tree) if words(name) & set(RETIRED)]
        prose = [*docstrings(tree), *comments(path)]
        found += [f"{where}:{line}: {hit[0]}" for line, text in prose if (hit := RETIRED_IN_PROSE.search(text))]
    assert found == []


def test_tests_use_public_names() -> None:
    """Private attributes of other objects, and private imports."""
    found = []
    for path in (path for path in FILES if path.is_relative_to(ROOT / "tests")):
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    continue
                case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
                case ast.ImportFrom(names=imported):
                    private = [alias.name for alias in imported if re.match("_[^_]", alias.name)]
                    found += [f"{path.relative_to(ROOT)}:{node.lineno}: {name}" for name in private]
    assert found == []


def test_tests_wait_for_conditions_instead_of_sleeping() -> None:
    """A sleep of a constant time; polling loops name their interval."""
    found = []
    for path in (path for path in FILES if path.is_relative_to(ROOT / "tests")):
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant()]):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def is_shown_raw(node: ast.AST, error: str) -> bool:
    """Return whether an expression converts an error to text itself."""
    match node:
        case ast.FormattedValue(value=ast.Name(id=name)) | ast.Attribute(value=ast.Name(id=name), attr="strerror"):
            return name == error
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name == error
    return False


def test_errors_of_the_operating_system_are_shown_without_their_numbers() -> None:
    """`os_reason` and `in_one_line` make a sentence of an OSError; its own text begins with `[Errno 30]`."""
    found = []
    for path in [*ROOT.glob("racer_env/**/*.py"), *ROOT.glob("racer_viewer/**/*.py")]:
        for handler in ast.walk(parsed(path)):
            if not isinstance(handler, ast.ExceptHandler) or handler.type is None or handler.name is None:
                continue
            if "OSError" in ast.unparse(handler.type):
                shown = [node for node in ast.walk(handler) if is_shown_raw(node, handler.name)]
                found += [f"{path.relative_to(ROOT)}: {ast.unparse(node)}" for node in shown]
    assert found == []
    error = OSError(30, "Read-only file system", "/data/replays")
    assert os_reason(error) == "Read-only file system"
    assert in_one_line(error) == "/data/replays: Read-only file system"
    assert in_one_line(OSError("no\nnumber")) == os_reason(ValueError("no number")) == "no number"
