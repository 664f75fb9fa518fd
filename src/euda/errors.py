"""Errors that a user can cause, each one clear sentence; the command line prints it and exits with 2."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable


class EudaError(ValueError):
    """Something the user asked for cannot be done; the message names the bad value and the valid ones.

    >>> import euda
    >>> try:
    ...     euda.make("walker3d")
    ... except euda.EudaError as error:
    ...     print(str(error)[:58])
    unknown task 'walker3d': did you mean 'walker3d_run' or 'w
    """


class ModelError(EudaError):
    """A MuJoCo model that cannot be read or has no limb tree."""


class LayoutError(EudaError):
    """A layout that contradicts itself or does not fit the array it is used on."""


class SimulationError(EudaError):
    """The simulation received or produced numbers that are not finite."""


class InstabilityError(SimulationError):
    """The simulation blew up: from a state that was reached and an action that was allowed."""


class UnfitError(EudaError):
    """What was stored is not of this agent or replay."""


class RenderingError(EudaError):
    """No picture can be drawn on this machine."""


def unknown(what: str, value: object, valid: Iterable[str]) -> EudaError:
    """The error for a name that is not in a list: names it, the nearest ones, and all valid ones."""
    valid = list(valid)
    near = difflib.get_close_matches(str(value), valid, n=3, cutoff=0.6)
    hint = f" did you mean {' or '.join(repr(name) for name in near)}?" if near else ""
    return EudaError(f"unknown {what} {value!r}:{hint} valid are {', '.join(valid)}")


def failure(what: str, error: BaseException) -> EudaError:
    """The error for code of the user's own that raised anything: what failed, where, and with which words.

    Call it in an `except (Exception, SystemExit)`: a function that calls `sys.exit` has failed too, and must not end
    the run as if all were well.
    """
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())
    where = f"in line {place.lineno} of {os.path.basename(place.filename)!r}"
    return EudaError(f"{what} failed {where}: {type(error).__name__}{': ' if said else ''}{said}")
