"""Tables → files for other trainers, each with a test of its own beside it; nothing of euda is needed to use them.

The Python files are texts of the folder `written`, with the tables of a robot put in, so what is written is what is
tested here. The verdicts of the simulator stand above everything as comments.
"""

from __future__ import annotations

import json
import pprint
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from euda.errors import EudaError
from euda.symmetry.exporting import morphosymm

MARK = "written by euda symmetry --export"
Tables = dict[str, Any]


class Format(NamedTuple):
    """One kind of file."""

    suffix: str
    write: Callable[[Tables, str], str]
    """(tables, usage) → the text of the file."""
    test: str
    """The module here whose text is the test."""
    usage: str = ""
    """How the file is used, for its head."""


def export(tables: Tables, name: str, folder: Path) -> list[Path]:
    """Write the files of a format into a folder; refuses to replace files that are not of this kind."""
    chosen = FORMATS[name]
    if not folder.is_dir():
        raise EudaError(f"there is no folder {str(folder)!r} to write into")
    stem = re.sub(r"\W+", "_", str(tables["robot"])).strip("_").lower() or "robot"
    path = folder / f"{stem}_symmetry{chosen.suffix}"
    test = folder / f"test_{path.stem}_{path.suffix[1:]}.py"
    for one in (path, test):
        if one.exists() and MARK not in one.read_text(encoding="utf-8", errors="replace"):
            raise EudaError(f"{str(one)!r} is there and was not {MARK}: nothing was written; choose another --out")
    text = chosen.write(tables, chosen.usage.format(module=path.stem))
    check = re.sub(r'^(MODULE|TABLES) = ".*$', rf'\1 = "{path.name}"', _text(chosen.test), count=1, flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
    test.write_text(f"{_comment([f'A test of {path.name}, {MARK}: run it with pytest'])}\n{check}", encoding="utf-8")
    return [path, test]


def verdicts(tables: Tables) -> list[str]:
    """What the simulator says, a line each."""
    lines = [
        f"The symmetries of {tables['robot']} (model {tables['model']}), {MARK}",
        f"(euda {tables['euda']}, MuJoCo {tables['mujoco']}). Each element was tried in {tables['states']} states:"
        " a step from the state, and from its image.",
    ]
    for one in tables["elements"]:
        error, reward = one["error"], {None: "none", "broken": "not kept"}.get(one["reward"], "kept")
        lines.append(
            f"- {one['name']}: {one['verdict']} (error of a step {error['median']:.2g} of its change,"
            f" {error['p90']:.2g} in one of ten, at worst {error['max']:.2g}), reward {reward}"
        )
    return lines + [f"- differs: {sentence}" for sentence in tables["differences"]]


def _python(tables: Tables, usage: str) -> str:
    data = pprint.pformat(tables, width=116, compact=True, sort_dicts=False)
    placed = re.sub(r"^DATA: dict = .*$", lambda _: f"DATA = {data}", _text("torch_runtime"), flags=re.MULTILINE)
    return f"{_comment([*verdicts(tables), '', *usage.splitlines()])}\n{placed}"


def _json(tables: Tables, usage: str) -> str:
    del usage
    return json.dumps({"about": verdicts(tables), **tables}, indent=1) + "\n"


def _yaml(tables: Tables, usage: str) -> str:
    return morphosymm.write(tables, usage, verdicts(tables))


def _comment(lines: list[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _text(module: str) -> str:
    return Path(__file__).with_name("written").joinpath(f"{module}.py").read_text(encoding="utf-8")


_NAMES = """
Joints and actions are found by name, so their order may differ from that of the MuJoCo model. Vectors of the root are
those of the frame of its MuJoCo body. Terms of your own need a line in RULES."""
FORMATS: dict[str, Format] = {
    "rsl_rl": Format(".py", _python, "torch_axioms", """
In the configuration of rsl_rl:
    "algorithm": {{"symmetry_cfg": {{"use_data_augmentation": True, "use_mirror_loss": False,
        "data_augmentation_func": "{module}:compute_symmetric_states"}}, ...}}
Name the terms of your observations in OBSERVATIONS; those of an euda environment are the term "euda"."""),
    "isaaclab": Format(".py", _python, "torch_axioms", """
In the configuration of Isaac Lab's RSL-RL runner:
    symmetry_cfg = RslRlSymmetryCfg(
        use_data_augmentation=True, data_augmentation_func={module}.compute_symmetric_states)
Terms are those of the environment's observation manager.""" + _NAMES),
    "mjlab": Format(".py", _python, "torch_axioms", """
In the configuration of mjlab's RSL-RL runner, among the settings of the algorithm:
    symmetry_cfg = {{"use_data_augmentation": True, "data_augmentation_func": "{module}:compute_symmetric_states"}}
Terms are those of the environment's observation manager.""" + _NAMES),
    "morphosymm": Format(".yaml", _yaml, "yaml_axioms", """
A robot of MorphoSymm: put it into its folder cfg/robot. Joints are in the order of the MuJoCo model, below; if your
URDF has another one, reorder rows and entries."""),
    "json": Format(".json", _json, "table_axioms"),
}  # fmt: skip
"""By name. A new format is a new row."""
