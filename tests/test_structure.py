"""The shape of the code base: no package cycles, no scattered small files, one meaning for each class name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("racer_env", "racer_viewer")
MAX_FILES = 245 + 6 + 10 + 10 + 12 + 9
"""Maximum number of source files; the package `circuits` added six, reward terms and the reward lab ten,
the editor ten, learning from drives (cloning, corrections, data sets, comparison of laps) twelve, and the gallery and
the import of circuits nine."""
MIN_MEAN_LINES = 210
"""Minimum number of lines of a source file, on average; more files do not mean smaller ones."""
SMALL_FILE_LINES = 60
"""A smaller file with a single importer belongs in that importer."""
SMALL_FILES = {
    "racer_env.engine.laps": "decides lap times",
    "racer_viewer.app.backdrop": "imports the engine; the menu must open without it",
}
"""Small files with a single importer, each with its reason. Files of `cli` are verbs."""


def modules() -> dict[str, Path]:
    """Return the path of every module by its dotted name; a package stands for its `__init__`."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


MODULES = modules()
SOURCE_FILES = {name: path for name, path in MODULES.items() if path.name != "__init__.py"}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> list[str]:
    """Return the modules of the project that a file imports: at the top, in functions and for type checkers."""
    return list(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in MODULES or node.module in MODULES:
                    yield submodule if submodule in MODULES else node.module


def unit_of(module: str) -> str:
    """Return the package that a module counts for; modules at the root of a distribution package count singly."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    return module if package in PACKAGES else package


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of units that reach each other."""

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        open_units = [start]
        while open_units:
            for unit in graph[open_units.pop()] - found:
                found.add(unit)
                open_units.append(unit)
        return found

    reach = {unit: reachable(unit) for unit in list(graph)}
    groups = [{other for other in reach[unit] if unit in reach[other]} for unit in reach if unit in reach[unit]]
    return [group for number, group in enumerate(groups) if group not in groups[:number]]


def package_graph() -> dict[str, set[str]]:
    """Return the packages that each package imports from."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        source = unit_of(module)
        for target in map(unit_of, imported(path)):
            if target != source:
                graph[source].add(target)
                graph.setdefault(target, set())
    return graph


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert cycles(graph) == [{"a", "b", "c"}]
    assert cycles({"a": {"b"}, "b": set()}) == []


def test_packages_import_each_other_in_one_direction() -> None:
    assert cycles(package_graph()) == []


def test_the_number_of_source_files_stays_small() -> None:
    assert len(SOURCE_FILES) <= MAX_FILES


def test_source_files_are_concepts_and_not_fragments() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE_FILES.values())
    assert lines / len(SOURCE_FILES) >= MIN_MEAN_LINES


def test_small_files_have_several_importers() -> None:
    importers: dict[str, set[str]] = defaultdict(set)
    for module, path in MODULES.items():
        for name in imported(path):
            importers[name].add(module)
    small = {
        name
        for name, path in SOURCE_FILES.items()
        if len(path.read_text(encoding="utf-8").splitlines()) < SMALL_FILE_LINES
        and len(importers[name]) <= 1
        and path.name != "__main__.py"
        and not name.startswith("racer_viewer.cli.")
    }
    assert small <= set(SMALL_FILES)


def test_a_public_class_name_stands_for_one_class() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for name, path in SOURCE_FILES.items():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_class_hierarchies_are_flat(package: str) -> None:
    """Check for at most two levels of the project's own classes, errors aside."""
    bases: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        if name.startswith(package):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef):
                    bases[node.name] = [ast.unparse(base).rpartition(".")[2] for base in node.bases]

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name] if base in bases and base != name), default=0)

    deep = {name for name in bases if depth(name) > 2 and not name.endswith("Error")}
    assert deep == set()
