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
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())]
    assert [
        f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()
    ] == []
