"""Documents and the blocks in them."""

import itertools
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fenced(text: str) -> list[tuple[str, str]]:
    """Language and content of every block of a document, in order."""
    blocks: list[tuple[str, list[str]]] = []
    is_open = False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            is_open = not is_open
            if is_open:
                blocks.append((line[3:].strip(), []))
        elif is_open:
            blocks[-1][1].append(line)
    assert not is_open, "a block is not closed"
    return [(language, "".join(lines)) for language, lines in blocks]


def python_blocks(text: str, wanted: str = "python") -> list[tuple[str, str]]:
    """Every Python block with the text block after it, which is what it prints.

    Blocks marked `python extras` need packages that are not in the lock: tests_extras runs those.
    """
    blocks = [*fenced(text), ("", "")]
    return [
        (code, printed if after == "text" else "")
        for (language, code), (after, printed) in itertools.pairwise(blocks)
        if language == wanted
    ]
