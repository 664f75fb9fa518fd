"""What the documents show of MJX and Playground is what happens."""

import contextlib
import io

import pytest
from documents import PAGES, ROOT, python_blocks

EXAMPLES = [
    pytest.param(*block, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, block in enumerate(python_blocks(page.read_text("utf-8"), "python mjx"), start=1)
]


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_example_prints_what_it_says(code, printed):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own documents
    assert out.getvalue() == printed
