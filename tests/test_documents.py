"""What README and docs show is what happens: their Python runs and prints what they say."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = [
    pytest.param(code, printed, id=f"{path.relative_to(ROOT)}:{number}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, (code, printed) in enumerate(BLOCK.findall(path.read_text()), start=1)
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_example_prints_what_it_says(code, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own documents
    if printed:
        assert out.getvalue() == printed


def test_links_and_pictures_exist():
    broken = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in link and not (path.parent / link).exists():
                broken.append(f"{path.relative_to(ROOT)}: {link}")
    assert broken == []
