"""What the documents show is what happens: their Python runs and prints what they say, their commands exist."""

import contextlib
import importlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest
import untrained
from documents import PAGES, ROOT, fenced, python_blocks
from PIL import Image

import euda.testing
from euda.runs import plugins, run_folder
from euda.terminal import cli

FILE = re.compile(r"# src/(euda/[\w/]+)\.py\n")
NUMBER = re.compile(r"\b\d[\d.]*(?:e[+-]\d+)?\b")


def sections(page: Path) -> list[list[tuple[str, str]]]:
    """Python blocks that are run one after the other: those of one section of CONTRIBUTING, each alone elsewhere."""
    text = page.read_text("utf-8")
    if page.name == "CONTRIBUTING.md":
        return [blocks for part in re.split(r"^## ", text, flags=re.MULTILINE) if (blocks := python_blocks(part))]
    return [[block] for block in python_blocks(text)]


EXAMPLES = [
    pytest.param(blocks, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, blocks in enumerate(sections(page), start=1)
]


@pytest.fixture
def tables():
    """Rows and files that an example adds are taken away again."""
    before = [(table, dict(table)) for table in plugins.TABLES.values()]
    modules = set(sys.modules)
    yield
    for table, rows in before:
        table.clear()
        table.update(rows)
    for name in [
        name for name in set(sys.modules) - modules if getattr(sys.modules[name], "__file__", "") == "example"
    ]:
        del sys.modules[name]


def as_file(code: str) -> None:
    """Let a block that begins with a file name be that module."""
    name = FILE.match(code)[1].replace("/", ".")
    assert importlib.util.find_spec(name) is None, f"there is a real {name}: show another example"
    module = types.ModuleType(name)
    module.__file__ = "example"
    sys.modules[name] = module
    exec(compile(code, name, "exec"), module.__dict__)  # our own documents


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("blocks", EXAMPLES)
def test_example_prints_what_it_says(blocks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code, printed in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if FILE.match(code):
                as_file(code)
            else:
                exec(compile(code, "example", "exec"), {"__name__": "example"})  # our own documents
        if printed:
            assert out.getvalue() == printed


# -- commands --------------------------------------------------------------------------------------------


def shown_commands(page: Path) -> list[str]:
    """The `euda …` lines of a page's blocks, without prompt and comment."""
    shells = [content for language, content in fenced(page.read_text("utf-8")) if language in ("sh", "text", "")]
    text = "\n".join(shells).replace("\\\n", " ")
    return [match[1] for match in re.finditer(r"^(?:\$ )?(euda .*)$", text, re.MULTILINE)]


SHOWN = [
    pytest.param(line, id=f"{page.name}: {line.split('  ')[0]}") for page in PAGES for line in shown_commands(page)
]


@pytest.mark.parametrize("line", SHOWN)
def test_command_exists_with_these_flags(line):
    assert cli.parse(shlex.split(line, comments=True)[1:]) is not None or "--help" in line or "--version" in line


CHEAP = ("tasks", "layout")


WITHOUT_COMMENTS = sorted({" ".join(shlex.split(line.values[0], comments=True)) for line in SHOWN})


@pytest.mark.parametrize("line", [line for line in WITHOUT_COMMENTS if line.split()[1] in CHEAP and "TASK" not in line])
def test_cheap_command_succeeds(line, capsys):
    assert cli.main(line.split()[1:]) == 0, capsys.readouterr().err


TRANSCRIPTS = [
    pytest.param(*content[2:].split("\n", 1), id=f"{page.name}: {content[2:].splitlines()[0]}")
    for page in PAGES
    for _, content in fenced(page.read_text("utf-8"))
    if content.startswith("$ euda ") and content.count("$ ") == 1
]


@pytest.mark.parametrize(("command", "printed"), TRANSCRIPTS)
def test_transcript_is_what_the_command_prints_but_for_rounding(command, printed, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    cli.main(shlex.split(command)[1:])
    found = capsys.readouterr().out
    words = [re.sub(r"\s+", " ", NUMBER.sub("N", text)).strip() for text in (found, printed)]
    assert words[0] == words[1]


# -- links, tables, figures, the site --------------------------------------------------------------------


def test_links_and_pictures_exist():
    links = [
        (page, link) for page in PAGES for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    ]
    assert [
        f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()
    ] == []


def load(script: str) -> types.ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{script}", ROOT / "docs" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_are_what_the_program_says():
    generate = load("generate")
    pages = {path: path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
    stale = [path.name for path, text in pages.items() if generate.written(text) != text]
    assert stale == [], "run .venv/bin/python docs/generate.py"
    used = {name for text in pages.values() for _, name, _ in generate.SECTION.findall(text)}
    assert used == set(generate.SECTIONS)


def test_figures_show_what_the_text_says():
    figures = load("figures")
    assert figures.drift("quadruped_run", "elliptic", steps=10).max() < 1e-9
    assert figures.drift("quadruped_run", "default", steps=10).max() > 1e-3
    observation, layout = figures.moving("hopper3d_hop", "joint")
    assert (figures.turning(layout).sum(), len(observation)) == (6, 37)
    figure = figures.limbs()
    assert figure.legends[0].get_texts()[0].get_text().startswith("position")
    figures.plt.close(figure)


def test_the_animation_shows_both_sides(tmp_path):
    animation = load("animation")
    runs = [untrained.run(tmp_path / name, "reacher_hard", mlp={"hidden_size": 16}) for name in ("a", "b")]
    out = tmp_path / "learning.webp"
    size = animation.animate(runs[:1], runs[1:], out, seconds=0.3)
    with Image.open(out) as film:
        assert (film.n_frames, film.size) == (5, (2 * animation.WIDTH + 4, animation.HEIGHT + 22))
    assert size == out.stat().st_size < animation.LARGEST
    assert animation.caption(runs[0], "without symmetry") == "without symmetry: 1 000 steps"


def test_readme_says_of_the_animation_what_its_runs_say():
    animation, readme = load("animation"), (ROOT / "README.md").read_text("utf-8")
    for side, name in (("Without symmetry", "limb"), ("With symmetry", "canonical")):
        assert animation.caption(run_folder.load(ROOT / "docs" / "learning" / name), side) in readme


def test_reference_has_every_public_name():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    shown = set(re.findall(r"^\.\. auto\w+:: ([\w.]+)$", page, re.MULTILINE))
    own = [name for name, value in vars(euda.testing).items() if getattr(value, "__module__", "") == "euda.testing"]
    wanted = {f"euda.{name}" for name in euda.__all__} | {f"euda.testing.{name}" for name in own if name[0] != "_"}
    assert wanted - shown == set()


def test_site_builds_without_warnings(tmp_path):
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--jobs=1", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pages = {
        path.relative_to(tmp_path / "site"): path.read_text("utf-8") for path in (tmp_path / "site").glob("*.html")
    }
    assert {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= {str(path) for path in pages}
    loaded = {
        link
        for text in pages.values()
        for link in re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=.(http[^\"']*)", text)
    }
    assert loaded == set(), "the site loads something from elsewhere"
