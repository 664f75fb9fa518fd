"""The command about a robot's symmetries: find, try, mend."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from euda import lookup
from euda.errors import EudaError
from euda.runs.robot_flags import AimFlags
from euda.schema import NotNegative, Share
from euda.symmetry.judging.verdict import ORDER
from euda.terminal import printing, tables
from euda.terminal.body_commands import Features, Reward, Subject, find_environment

if TYPE_CHECKING:
    from euda.body.layout import Layout
    from euda.symmetry.examined import ElementVerdict, Examined

_AIM = AimFlags()
_SHOWN = 12  # defects that are printed


def symmetry(
    subject: Subject = None,
    *,
    features: Features = "limb",
    cone: str | None = None,
    payload: Share = 0.0,
    states: int = 60,
    seed: int = 0,
    tolerance: NotNegative = 0.0,
    mend: Path | None = None,
    export: str | None = None,
    out: Path | None = None,
    elements: tuple[str, ...] = (),
    env: str | None = None,
    robot: AimFlags = _AIM,
    reward: Reward = None,
    json_: bool = False,
) -> int:
    """Find a robot's mirrors and limb permutations, and test each.

    Each is tested in the simulator, like a yaw by `euda certify`. Exit code 0: all exact; 1: not.

    Args:
        subject: Name of a task, or path of an MJCF file.
        features: What is observed.
        cone: default (as the model has it) or elliptic; by default the task's own.
        payload: Of a task whose robot is free: a load on its left, as a share of its mass, so that its mirror is near.
        states: Visited states to compare; others are constructed so that differences act.
        seed: Seed of states and actions.
        tolerance: Error of a step, as a share of its change, up to which an element counts as exact for the exit code.
        mend: Write a model in which each part is averaged with its images to this file, and test it.
        export: Write the elements for another trainer: rsl_rl, isaaclab, mjlab, morphosymm or json.
        out: Folder for the files of --export; by default the current one.
        elements: Names or numbers of the elements to average over or export; by default all that are exact or near.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A custom robot.
        reward: Custom robot: your module:function, or one of.
        json_: Print JSON instead of a table.
    """
    from euda.runs import robot_flags
    from euda.symmetry.examination import examine
    from euda.symmetry.exporting.formats import FORMATS

    if elements and mend is None and export is None:
        raise EudaError("--elements needs --mend FILE.xml or --export FORMAT")
    if out is not None and export is None:
        raise EudaError("--out needs --export FORMAT")
    if export is not None:
        lookup.find("format", FORMATS, export)
    if env is not None or (subject is not None and robot_flags.is_model(subject)):
        robot = dataclasses.replace(robot, allow_loops=True)  # loops leave limb features redundant: no matter here
    found = find_environment(subject, env, features, cone, robot, reward, payload)
    with _progress() as progress:
        examined = examine(found, states=states, seed=seed, progress=progress)
        if examined.group.order == 1:
            raise EudaError(_no_symmetry(examined))
        after = None if mend is None else _mended(examined, subject, elements, mend, states, seed, progress)
        written = [] if export is None else _exported(examined, elements, export, out or Path(), found.layout)
    if json_:
        extra = {} if after is None else {"mended": after.to_json() | {"file": str(mend)}}
        print(json.dumps(examined.to_json() | extra, indent=2))
    else:
        _show(examined)
        if after is None and any(defect.origin.quantity is not None for defect in examined.defects):
            print("how: --mend FILE.xml writes a model in which each part is averaged with its images")
        if after is not None:
            print(f"wrote {mend}")
            _show(after)
        for path in written:
            print(f"wrote {path}")
    verdicts = (after or examined).verdicts
    return 0 if all(one.is_exact or one.max <= tolerance for one in verdicts) else 1


def _no_symmetry(examined: Examined) -> str:
    nearest = examined.group.nearest
    return f"{examined.name} has no symmetry other than the yaws" + (f"; the nearest is {nearest}" if nearest else "")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal only."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what: None
        return
    with console.status("starting") as status:
        yield status.update


# -- mending ---------------------------------------------------------------------------------------------


def _mended(
    examined: Examined, subject: str | None, names: tuple[str, ...], out: Path, states: int, seed: int,
    progress: Callable[[str], None],
) -> Examined:  # fmt: skip
    """Write the mended model, and examine what was written."""
    from euda.runs import robot_flags
    from euda.symmetry.examination import examine
    from euda.symmetry.repair import mend
    from euda.tasks import table

    if out.suffix != ".xml":
        raise EudaError(f"--mend writes MJCF: give a file that ends in .xml, not {str(out)!r}")
    if not out.parent.is_dir():
        raise EudaError(f"there is no folder {str(out.parent)!r} to write {out.name!r} into")
    chosen = _chosen(examined, names)
    progress("averaging each part with its images")
    model = mend.mended(examined.model, examined.group, chosen)
    if subject is not None and robot_flags.is_model(subject):
        mend.write_mended(mend.model_text(Path(subject)), model, out, Path(subject).parent)
    elif subject is not None:
        with tempfile.TemporaryDirectory() as folder:
            text = mend.last_text(table.load(subject).physics.model.ptr, Path(folder))
        mend.write_mended(text, model, out)
    else:
        raise EudaError("--mend needs a task or an MJCF file: the file of an environment is not known")
    return examine(out, states=states, seed=seed, progress=progress)


def _exported(examined: Examined, names: tuple[str, ...], export: str, out: Path, layout: Layout) -> list[Path]:
    """Write the elements for another trainer: those that are asked for, or that keep motion and reward."""
    from euda.symmetry.exporting.formats import export as write_files
    from euda.symmetry.exporting.tables import tables
    from euda.symmetry.repair.mend import generated

    verdicts = examined.verdicts
    places = [place for place in _chosen(examined, names) if place and not verdicts[place].element.is_trivial]
    if not names:
        places = [place for place in places if verdicts[place].is_of_the_task]
    for place in places:
        if verdicts[place].verdict == "broken":
            raise EudaError(f"{verdicts[place].element.name} is broken, so it is not exported: see euda symmetry")
    chosen = sorted({*generated(examined.group, places)} - {0}) if places else []
    if not chosen:
        trivial = all(one.element.is_trivial for one in verdicts)
        why = "its mirror is trivial, since it moves nothing" if trivial else "none keeps the motion and the reward"
        raise EudaError(f"{examined.name} has no element to export: {why}")
    return write_files(tables(examined, chosen, layout), export, out)


def _chosen(examined: Examined, names: tuple[str, ...]) -> list[int]:
    """Places of the elements to mend for."""
    known = [one.element.name for one in examined.verdicts]
    if not names:
        near = [i for i, one in enumerate(examined.verdicts) if i and one.verdict != "broken"]
        if not near:
            raise EudaError("no symmetry of this robot is near: name an element with --elements")
        return near
    places = []
    for name in names:
        if name in known:
            places.append(known.index(name))
        elif name.isdecimal() and int(name) < len(known):
            places.append(int(name))
        else:
            listed = ", ".join(f"{i} ({one})" for i, one in enumerate(known) if i)
            raise EudaError(f"no element {name!r}: elements are {listed}")
    return places


# -- printing --------------------------------------------------------------------------------------------


def _show(examined: Examined) -> None:
    printing.statement(
        f"{examined.name}: {examined.group.order} elements, tried in {examined.states} states and {examined.sought}"
        f" made on purpose, {examined.coverage.contacts} contact pairs, {examined.coverage.limits} limits"
    )
    rows = [_row(number, one) for number, one in enumerate(examined.verdicts)]
    header = ("", "element", "verdict", "reward", "median", "90 %", "worst", "bodies", "joints", "actions")
    tables.show(header, rows, texts=4)
    if any(not one.is_exact for one in examined.verdicts):
        printing.statement(_ERRORS)
    for place, defect in enumerate(examined.defects[:_SHOWN]):
        printing.statement(f"differs: {defect.sentence}{_explains(examined, place)}")
    if len(examined.defects) > _SHOWN:
        print(f"differs: and {len(examined.defects) - _SHOWN} more, see --json")
    for one in examined.verdicts:
        for fit in one.fits:
            printing.statement(f"fitted: field {fit.field!r} under {one.element.name}: {fit.words}; {fit.reason}")
    for names, cause in _shared_causes(examined.verdicts):
        printing.statement(f"because ({names}): {cause}")
    printing.statement(f"verdict: {_in_words(examined.verdicts)}")


_ERRORS = (
    "errors: of a step, as a share of its change of velocity; median and 90 % of visited states, worst of all states"
)


def _explains(examined: Examined, place: int) -> str:
    """The share of the error that a defect explains; whose error, if there are several elements."""
    share = examined.blame.get(place)
    if share is None:
        return ""
    whose = examined.verdicts[examined.defects[place].origin.elements[0]].element.name
    return f" (explains {100 * share.share:.0f} % of the error{f' of {whose}' if examined.group.order > 2 else ''})"


def _shared_causes(verdicts: Sequence[ElementVerdict]) -> list[tuple[str, str]]:
    """Each cause once, with the names of the elements that have it; the numbers are those of the first."""
    found: dict[str, tuple[list[str], str]] = {}
    for one in verdicts:
        for cause in one.causes:
            found.setdefault(cause.partition("; ")[0], ([], cause))[0].append(one.element.name)
    return [
        (names[0] + (f"; also {', '.join(names[1:])}" if names[1:] else ""), cause) for names, cause in found.values()
    ]


def _in_words(verdicts: Sequence[ElementVerdict]) -> str:
    """Which elements can be learned from, the nearest to exact first, and why others cannot."""
    others = [one for one in verdicts if not one.element.is_identity]
    words: dict[str, list[str]] = {verdict: [] for verdict in ORDER}
    for one in others:
        word = "trivial: nothing moves" if one.element.is_trivial else one.verdict
        word = word if one.is_of_the_task or one.verdict == "broken" else "of the motion, not of the reward"
        words.setdefault(word, []).append(one.element.name)
    return "; ".join(f"{', '.join(names)} ({word})" for word, names in words.items() if names)


def _row(number: int, one: ElementVerdict) -> tuple[Any, ...]:
    """Errors of a step as shares of its change, and what moves or changes sign."""
    element = one.element
    verdict = "trivial" if element.is_trivial and not element.is_identity else one.verdict
    reward = {None: "-", "broken": "no symmetry of it"}.get(one.reward, one.reward)
    moved = [
        f"{sum(int(k) != i for i, k in enumerate(images.image))} moved, {int((images.signs < 0).sum())} flipped"
        for images in (element.joints, element.actuators)
    ]
    bodies = f"{sum(int(k) != i for i, k in enumerate(element.bodies.image))} moved"
    errors = [f"{value:.1e}" if value > 1e-9 else "0" for value in (one.median, one.p90, one.max)]
    return (number, element.name, verdict, reward, *errors, bodies, *moved)
