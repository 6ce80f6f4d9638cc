"""Collect the marked texts of racer_viewer, update the translations (.po) and compile them (.mo).

`python tools/messages.py` does all of it, with the standard library only; a text without a translation stays English.
"""

from __future__ import annotations

import ast
import struct
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "racer_viewer"
CATALOGUES = PACKAGE / "translation"
TEMPLATE = CATALOGUES / "racer_viewer.pot"
PLURAL_FORMS = {
    "de": "nplurals=2; plural=(n != 1);",
    "fr": "nplurals=2; plural=(n > 1);",
}
"""Rule of the plural by language, as gettext writes it."""
MARKERS = {"_": 1, "mark": 1, "ngettext": 2}
"""Number of texts that each marking function takes."""
MO_MAGIC = 0x950412DE


@dataclass
class Message:
    """A text, its plural if it has one, where it is used, and its translations: one, or one for each form."""

    text: str
    plural: str = ""
    places: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)


Catalogue = dict[str, Message]
"""Messages by their English text."""


def collect(root: Path = PACKAGE) -> Catalogue:
    """Return all marked texts below a folder, in the order of files and lines."""
    found: Catalogue = {}
    for path in sorted(root.rglob("*.py")):
        for texts in _marked(ast.parse(path.read_text(encoding="utf-8"))):
            message = found.setdefault(texts[0], Message(texts[0]))
            place = path.relative_to(root.parent).as_posix()
            if place not in message.places:
                message.places.append(place)
            if len(texts) > 1:
                message.plural = texts[1]
    return found


def _marked(tree: ast.AST) -> Iterator[list[str]]:
    """Yield the texts of each call of a marking function, in the order of lines."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        count = MARKERS.get(call.func.id, 0) if isinstance(call.func, ast.Name) else 0
        texts = [each.value for each in call.args[:count] if isinstance(each, ast.Constant)]
        if texts and len(texts) == count and all(isinstance(text, str) for text in texts):
            yield [str(text) for text in texts]


def read_po(path: Path) -> Catalogue:
    """Read a .po file as this tool writes it."""
    found: Catalogue = {}
    entry: dict[str, str] = defaultdict(str)
    key = ""
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if not line.strip():
            if entry["msgid"]:
                translations = [text for name, text in sorted(entry.items()) if name.startswith("msgstr")]
                found[entry["msgid"]] = Message(entry["msgid"], entry["msgid_plural"], [], translations)
            entry.clear()
        elif line.startswith('"'):
            entry[key] += ast.literal_eval(line)
        elif not line.startswith("#"):
            key, _, text = line.partition(" ")
            entry[key] = ast.literal_eval(text)
    return found


def write_po(path: Path, messages: Catalogue, language: str = "") -> None:
    """Write messages as .po, or as a template without translations."""
    header = [f"Language: {language}\n"] if language else []
    header += ["MIME-Version: 1.0\n", "Content-Type: text/plain; charset=UTF-8\n", "Content-Transfer-Encoding: 8bit\n"]
    header += [f"Plural-Forms: {PLURAL_FORMS[language]}\n"] if language else []
    lines = ['msgid ""', 'msgstr ""', *(_quoted(line) for line in header), ""]
    for message in messages.values():
        lines += [f"#: {place}" for place in message.places]
        if "{" in message.text:
            lines.append("#, python-brace-format")
        lines.append(f"msgid {_quoted(message.text)}")
        if message.plural:
            lines.append(f"msgid_plural {_quoted(message.plural)}")
            forms = message.translations or ["", ""]
            lines += [f"msgstr[{number}] {_quoted(form)}" for number, form in enumerate(forms)]
        else:
            lines.append(f"msgstr {_quoted(''.join(message.translations))}")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def update(messages: Catalogue, translated: Catalogue) -> Catalogue:
    """Return all messages with the translations there are; texts that are no longer used are dropped."""
    return {
        text: Message(text, each.plural, each.places, translated[text].translations if text in translated else [])
        for text, each in messages.items()
    }


def compiled(messages: Catalogue, language: str) -> bytes:
    """Return translated messages in the binary format of gettext (.mo)."""
    header = f"Content-Type: text/plain; charset=UTF-8\nPlural-Forms: {PLURAL_FORMS[language]}\n"
    pairs = {"": header}
    for message in messages.values():
        if message.translations and all(message.translations):
            key = f"{message.text}\0{message.plural}" if message.plural else message.text
            pairs[key] = "\0".join(message.translations)
    encoded = sorted((key.encode(), text.encode()) for key, text in pairs.items())
    start = 28 + 16 * len(encoded)
    tables: list[list[int]] = [[], []]
    content = b""
    for column, table in enumerate(tables):
        for pair in encoded:
            table += [len(pair[column]), start + len(content)]
            content += pair[column] + b"\0"
    numbers = [MO_MAGIC, 0, len(encoded), 28, 28 + 8 * len(encoded), 0, start, *tables[0], *tables[1]]
    return struct.pack(f"<{len(numbers)}I", *numbers) + content


def mo_file(language: str) -> Path:
    return CATALOGUES / language / "LC_MESSAGES" / "racer_viewer.mo"


def main() -> int:
    """Update the template and every translation, and report how much is translated."""
    messages = collect()
    write_po(TEMPLATE, messages)
    for language in PLURAL_FORMS:
        path = CATALOGUES / f"{language}.po"
        updated = update(messages, read_po(path) if path.is_file() else {})
        write_po(path, updated, language)
        mo_file(language).parent.mkdir(parents=True, exist_ok=True)
        mo_file(language).write_bytes(compiled(updated, language))
        missing = sum(not (each.translations and all(each.translations)) for each in updated.values())
        print(f"{path.relative_to(ROOT)}: {len(updated)} texts, {missing} without a translation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
