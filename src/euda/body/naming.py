"""What a robot is called: after its model, and after the file's folder where neither model nor file says anything."""

from __future__ import annotations

import contextlib
from pathlib import Path
from xml.etree import ElementTree

import mujoco

_ANY = "scene"
"""The name of a file that tells no robot from another: every published one is called scene.xml."""
_UNNAMED = ("", "MuJoCo Model")
"""What a compiled model is called that was given no name."""
_ROOTS = {"mujoco": "model", "robot": "name"}
"""Root element of MJCF and of URDF, and its attribute with the name."""
_LONGEST = 60


def model_name(source: str | Path | mujoco.MjModel) -> str:
    """The name that a model gives itself; of a file without one that of the file, or of its folder.

    >>> import mujoco
    >>> model_name(mujoco.MjModel.from_xml_string("<mujoco model='arm'/>"))
    'arm'
    >>> model_name("robots/go1/scene.xml"), model_name("robots/go1/tripod.xml")
    ('go1', 'tripod')
    """
    if isinstance(source, mujoco.MjModel):
        return _compiled(source)
    path = Path(source)
    name = _readable(_written(path))
    if name not in _UNNAMED:
        return name
    folder = _readable(path.resolve().parent.name) if path.stem == _ANY else ""
    return folder or _readable(path.stem) or "model"


def _compiled(model: mujoco.MjModel) -> str:
    """The name of a compiled model, which begins its list of names."""
    name = _readable(bytes(model.names).split(b"\0", 1)[0].decode("utf-8", "replace"))
    return "model" if name in _UNNAMED else name


def _written(path: Path) -> str:
    """The name in the first element of an XML file; empty if there is none, or no such file."""
    with contextlib.suppress(OSError, ElementTree.ParseError), path.open("rb") as file:
        for _, element in ElementTree.iterparse(file, events=("start",)):
            return element.get(_ROOTS.get(element.tag, ""), "")
    return ""


def _readable(name: str) -> str:
    """A name from a file in one line: no characters that a terminal takes for commands, no more than a few words."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return " ".join(shown.split())[:_LONGEST].strip()
