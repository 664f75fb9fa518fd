"""Offline data → more offline data: changed copies of whole episodes, for datasets whose observations have a layout.

One yaw per episode and copy, so that consecutive observations still belong together; with elements of the robot's
finite group each copy is the image under one of them first, actions included. Two forms are understood:

- flat arrays, as D4RL has them: a mapping with `observations` [N, dim], and `next_observations` [N, dim] or the
  ends of episodes (`terminals`, `timeouts`). It comes back as a dict of longer arrays.
- episodes, as Minari has them: a `MinariDataset`, or any iterable of its episodes, with `observations`
  [T + 1, dim]. They come back as a list for `minari.create_dataset_from_buffers`.

What nothing is known about (infos, simulator states) would be wrong in a turned copy and is left out.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError
from euda.replay.batches import WHERE, check_fit, checked_elements
from euda.replay.dataset_changes import Changes

_TURNING = ("observations", "next_observations")
_INVARIANT = ("actions", "next_actions", "rewards", "terminals", "timeouts", "terminations", "truncations", "dones",
              "discounts", "masks")  # fmt: skip
_ACTIONS = ("actions", "next_actions")
_ENDS = ("terminals", "timeouts", "terminations", "truncations", "dones")


@dataclasses.dataclass(frozen=True)
class Episode:
    """One episode with the attributes of Minari's `EpisodeBuffer`, which Minari takes in its place.

    `observations` is [T + 1, dim]; actions, rewards, terminations and truncations have T rows.
    """

    observations: npt.NDArray[Any]
    actions: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: dict[str, Any] | None = None
    seed: int | None = None
    options: dict[str, Any] | None = None
    id: int | None = None

    def __len__(self) -> int:
        """How many actions were taken."""
        return len(self.rewards)


class MinariEpisode(Protocol):
    """What is read of Minari's `EpisodeData` and `EpisodeBuffer`."""

    observations: Any
    actions: Any
    rewards: Any
    terminations: Any
    truncations: Any


@overload
def augment_dataset(
    dataset: Mapping[str, Any],
    layout: Layout,
    *,
    copies: int,
    seed: int = 0,
    unchanged: Collection[str] = (),
    elements: Sequence[Acting] = (),
    yaws: bool = True,
) -> dict[str, npt.NDArray[Any]]: ...


@overload
def augment_dataset(
    dataset: Iterable[MinariEpisode],
    layout: Layout,
    *,
    copies: int,
    seed: int = 0,
    unchanged: Collection[str] = (),
    elements: Sequence[Acting] = (),
    yaws: bool = True,
) -> list[Episode]: ...


def augment_dataset(
    dataset: Any,
    layout: Layout,
    *,
    copies: int,
    seed: int = 0,
    unchanged: Collection[str] = (),
    elements: Sequence[Acting] = (),
    yaws: bool = True,
) -> Any:
    """The dataset followed by `copies` turned copies of it, with a yaw in [-π, π) for each episode of each copy.

    `layout` describes the observations. Actions, rewards and ends of episodes stay as they are. Other arrays (and
    Minari's infos) are left out, but for those that you name in `unchanged` because a yaw does not change them.

    With `elements` (mirrors and exchanges of limbs, see `task_symmetries`) the first copy is the image under the first
    of them, actions included, and so on; after the last comes a copy without one. `yaws=False` leaves the yaws out.

    >>> import numpy as np
    >>> import euda
    >>> env = euda.make("reacher_hard", seed=0)
    >>> first, _ = env.reset()
    >>> second, reward, *_ = env.step(env.action_space.high)
    >>> data = {"observations": first[None], "next_observations": second[None], "rewards": np.array([reward])}
    >>> more = euda.augment_dataset(data, env.layout, copies=3)
    >>> len(more["observations"]), len(more["rewards"])
    (4, 4)
    """
    if not isinstance(layout, Layout):
        raise LayoutError(
            f"augment_dataset needs the layout of the observations, not {layout!r}: {WHERE}, or write one with"
            " euda.Layout and euda.Field"
        )
    if isinstance(copies, bool) or not isinstance(copies, numbers.Integral) or copies < 0:
        raise EudaError(f"copies must be a whole number of at least 0, not {copies!r}")
    changes = Changes(layout, checked_elements(layout, elements), bool(yaws), np.random.default_rng(seed))
    changes.refuse_repeats(int(copies))
    if isinstance(dataset, Mapping):
        return _augment_arrays(dataset, changes, int(copies), unchanged)
    return _augment_episodes(dataset, changes, int(copies), unchanged)


def _checked(layout: Layout, observations: Any, what: str) -> npt.NDArray[Any]:
    """Observations [N, dim] as an array that the layout describes, all of them finite."""
    if isinstance(observations, Mapping | tuple):
        raise LayoutError(
            f"{what} are a {type(observations).__name__}, and a layout describes flat arrays of {layout.dim} numbers:"
            " give the entry that the layout belongs to"
        )
    array = np.asarray(observations)
    if array.ndim < 1:
        raise LayoutError(f"{what} must be an array of shape [N, {layout.dim}], not {observations!r}")
    check_fit(layout, array.shape[1:], array.dtype)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise EudaError(f"{what} must be finite, but row {bad[0]} (of {len(bad)} such rows) is not: leave it out")
    return array


# -- flat arrays ---------------------------------------------------------------------------------------------


def _augment_arrays(
    dataset: Mapping[str, Any], changes: Changes, copies: int, unchanged: Collection[str]
) -> dict[str, npt.NDArray[Any]]:
    layout = changes.layout
    if "observations" not in dataset:
        raise EudaError(
            f"a dataset of arrays needs 'observations', and has {', '.join(map(repr, dataset)) or 'nothing'}"
        )
    turning = {name: _checked(layout, dataset[name], f"{name!r}") for name in _TURNING if name in dataset}
    kept = {
        name: np.asarray(dataset[name]) for name in dataset if name not in turning and name in {*_INVARIANT, *unchanged}
    }
    size = len(turning["observations"])
    for name, array in (turning | kept).items():
        if array.shape[:1] != (size,):
            raise EudaError(
                f"{name!r} has shape {array.shape}, but there are {size} observations: give one row for each"
            )
    episode = _episodes(turning, kept)
    if episode is None:
        raise EudaError(
            "nothing says which observations belong together: add 'next_observations', or the ends of episodes"
            " ('terminals' and 'timeouts')"
        )
    _close(turning, kept)
    episodes = int(episode[-1]) + 1 if size else 0
    result = {name: np.concatenate([array] * (copies + 1)) for name, array in (turning | kept).items()}
    for copy in range(1, copies + 1):
        rows, yaws = slice(copy * size, (copy + 1) * size), changes.draw(episodes)
        for name, array in turning.items():
            result[name][rows] = changes.observations(copy, array, None if yaws is None else yaws[episode])
        for name in _ACTIONS:
            if name in kept:
                result[name][rows] = changes.actions(copy, kept[name])
    return result


def _ends(kept: Mapping[str, npt.NDArray[Any]], size: int) -> npt.NDArray[np.bool_]:
    """Rows [N] that are marked as the last of their episode."""
    marks = [kept[name].any(axis=tuple(range(1, kept[name].ndim))) for name in _ENDS if name in kept]
    return np.logical_or.reduce(marks) if marks else np.zeros(size, bool)


def _episodes(
    turning: Mapping[str, npt.NDArray[Any]], kept: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[np.int64] | None:
    """The number of the episode of each row [N], or None where it cannot be known.

    An episode ends where it says so, and where the next observation is not the observation of the next row. The
    second finds time limits that are not marked, and makes shuffled transitions episodes of a single step.
    """
    observations = turning["observations"]
    ends = _ends(kept, len(observations))
    if "next_observations" in turning:
        differs = turning["next_observations"][:-1] != observations[1:]
        ends[:-1] |= differs.any(axis=tuple(range(1, differs.ndim)))
    elif not any(name in kept for name in _ENDS):
        return None
    return np.concatenate([[0], np.cumsum(ends[:-1])]).astype(np.int64)[: len(observations)]


def _close(turning: Mapping[str, npt.NDArray[Any]], kept: dict[str, npt.NDArray[Any]]) -> None:
    """Mark the last row as an end by time limit where only marks say so: a copy with other yaws follows it."""
    size = len(turning["observations"])
    name = "truncations" if "truncations" in kept else "timeouts"
    if not size or _ends(kept, size)[-1] or ("next_observations" in turning and name not in kept):
        return
    kept[name] = kept[name].copy() if name in kept else np.zeros(size, bool)
    kept[name][-1] = True


# -- episodes ------------------------------------------------------------------------------------------------


def _augment_episodes(dataset: Any, changes: Changes, copies: int, unchanged: Collection[str]) -> list[Episode]:
    originals = [_episode(raw, number, changes.layout, unchanged) for number, raw in enumerate(_iterate(dataset))]
    changed = []
    for copy in range(1, copies + 1):
        yaws = changes.draw(len(originals))
        for episode, yaw in zip(originals, [None] * len(originals) if yaws is None else yaws.tolist(), strict=True):
            observations = changes.observations(copy, episode.observations, yaw)
            actions = changes.actions(copy, episode.actions)
            changed.append(
                dataclasses.replace(episode, observations=observations, actions=actions, seed=None, options=None)
            )
    return originals + changed


def _iterate(dataset: Any) -> Iterator[Any]:
    if hasattr(dataset, "iterate_episodes"):
        return iter(dataset.iterate_episodes())
    if isinstance(dataset, Iterable) and not isinstance(dataset, str | bytes | np.ndarray):
        return iter(dataset)
    raise EudaError(
        f"augment_dataset takes a mapping of arrays or the episodes of a Minari dataset, not {type(dataset).__name__}"
    )


def _episode(raw: Any, number: int, layout: Layout, unchanged: Collection[str]) -> Episode:
    names = ("observations", "actions", "rewards", "terminations", "truncations")
    missing = [name for name in names if not hasattr(raw, name)]
    if missing:
        raise EudaError(f"episode {number} has no {', '.join(missing)}: give episodes as Minari has them")
    observations = _checked(layout, raw.observations, f"the observations of episode {number}")
    if len(observations) != len(raw.rewards) + 1:
        raise EudaError(
            f"episode {number} has {len(observations)} observations for {len(raw.rewards)} rewards: there must be one"
            " more, the last one"
        )
    infos = {name: value for name, value in (getattr(raw, "infos", None) or {}).items() if name in unchanged}
    start = {name: getattr(raw, name, None) for name in ("seed", "options")}
    return Episode(observations, *(getattr(raw, name) for name in names[1:]), infos=infos or None, **start)
