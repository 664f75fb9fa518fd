"""What the documents show of other libraries is what happens."""

import contextlib
import io
import logging

import pytest
from documents import PAGES, ROOT, python_blocks

EXAMPLES = [
    pytest.param(*block, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, block in enumerate(python_blocks(page.read_text("utf-8"), "python extras"), start=1)
]


@pytest.mark.filterwarnings("ignore")  # of other libraries: SBX's about JAX, Minari's about metadata
@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_example_prints_what_it_says(code, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.setattr(logging.getLogger("torchrl"), "disabled", True)  # it logs to the standard output
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own documents
    assert out.getvalue() == printed


def test_the_recipe_for_any_loop_is_short():
    page = (ROOT / "docs" / "adapters.md").read_text("utf-8")
    block, *_ = python_blocks(page[page.index("## Any loop") : page.index("## Offline data")], "python extras")
    assert len(block[0].splitlines()) < 20
