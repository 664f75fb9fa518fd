"""(MjModel, elements) → a model in which each part is averaged with its images, and its MJCF.

Averages are taken over a subgroup, so that the result has every symmetry of it. What has no image, such as an eye on
one side, and what cannot be averaged, such as a mesh, stays as it is.
"""

from __future__ import annotations

import copy
import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path

import mujoco
import numpy as np

from euda.body.robot import quiet_warnings
from euda.errors import EudaError, ModelError
from euda.symmetry.group import Group
from euda.symmetry.repair.defects import averaged
from euda.symmetry.repair.mjcf import exact_xml
from euda.symmetry.repair.quantities import QUANTITIES


def generated(group: Group, elements: Iterable[int]) -> list[int]:
    """The places of all products of some elements: the subgroup that they generate, identity first."""
    found = {0, *elements}
    while True:
        products = {group.product(second, first) for second in found for first in found}
        if products <= found:
            return sorted(found)
        found |= products


def mended(
    model: mujoco.MjModel, group: Group, elements: Iterable[int], which: set[int] | None = None
) -> mujoco.MjModel:
    """A copy of the model with its parts averaged over the subgroup that `elements` generate.

    `which` restricts it to some of `QUANTITIES`.
    """
    return with_numbers(model, averaged(model, group, generated(group, elements), which))


def with_numbers(model: mujoco.MjModel, numbers: Mapping[int, np.ndarray]) -> mujoco.MjModel:
    """A copy of the model with other numbers of some quantities, and what MuJoCo derives from them."""
    result = copy.copy(model)
    inertial = np.zeros(model.nbody, bool)
    for place, values in numbers.items():
        QUANTITIES[place].write(result, values)
    for name in ("body_ipos", "body_iquat", "body_pos"):
        inertial |= np.abs(getattr(result, name) - getattr(model, name)).max(axis=1) > 0
    inertial[model.geom_bodyid[np.abs(result.geom_pos - model.geom_pos).max(axis=1, initial=0.0) > 0]] = True
    if (model.body_simple[inertial] != 0).any():
        raise ModelError("a body that is a robot by itself cannot be mended in place: its equations have another form")
    # MuJoCo skips frames that it knows to coincide; those of these bodies do not any more.
    result.body_sameframe[inertial] = 0
    result.geom_sameframe[inertial[model.geom_bodyid]] = 0
    result.geom_sameframe[np.abs(result.geom_quat - model.geom_quat).max(axis=1, initial=0.0) > 0] = 0
    result.site_sameframe[inertial[model.site_bodyid]] = 0
    mujoco.mj_setConst(result, mujoco.MjData(result))
    return result


def model_text(source: Path) -> str:
    """A model file with its includes, as MuJoCo writes it."""
    try:
        spec = mujoco.MjSpec.from_file(str(source))
        spec.compile()
        return spec.to_xml()
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{str(source)!r} cannot be read for mending: {' '.join(str(error).split())}") from None


def last_text(model: mujoco.MjModel, folder: Path) -> str:
    """The model that was compiled last from MJCF, as MuJoCo writes it; `folder` is for a file that goes again."""
    path = folder / "compiled.xml"
    try:
        mujoco.mj_saveLastXML(str(path), model)
        return path.read_text("utf-8")
    except (ValueError, mujoco.FatalError):
        raise EudaError("only robots that come as MJCF can be written: give the model file itself") from None
    finally:
        path.unlink(missing_ok=True)


def write_mended(text: str, model: mujoco.MjModel, out: Path, assets: Path | None = None) -> None:
    """Write `model`, compiled from `text` and then mended, as an MJCF file that compiles to the same numbers.

    `assets` is the folder that the text's own paths start from. The file appears only when it is complete.
    """
    quiet_warnings()
    temporary = out.with_name(f".{out.name}.tmp")

    def compile_(written: str) -> mujoco.MjModel:
        temporary.write_text(written, "utf-8")
        return mujoco.MjModel.from_xml_path(str(temporary))

    try:
        written = exact_xml(_with_folders(text, assets, out.parent), model, compile_)
        temporary.write_text(written, "utf-8")
        temporary.replace(out)
    except OSError as error:
        raise EudaError(f"cannot write {str(out)!r}: {error.strerror}") from None
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"the mended model does not compile: {' '.join(str(error).split())}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _with_folders(text: str, assets: Path | None, out: Path) -> str:
    """The text with the folders of meshes and textures as seen from where it is written."""
    root = ElementTree.fromstring(text)
    if assets is None or assets.resolve() == out.resolve():
        return text
    compiler = root.find("compiler")
    if compiler is None:
        compiler = ElementTree.SubElement(root, "compiler")
    here = Path(os.path.relpath(assets.resolve(), out.resolve()))
    for folder in ("meshdir", "texturedir"):
        own = compiler.get(folder) or compiler.get("assetdir") or ""
        compiler.set(folder, str(here / own))
    return ElementTree.tostring(root, encoding="unicode")
