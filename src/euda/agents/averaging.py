"""The actor's answer averaged over a finite group: exactly invariant under its elements, whatever the networks learnt.

The actor is asked for an observation x and for its images g x. Its answers are brought back by what undoes g on
actions, and averaged: f̄(x) = mean over g of g⁻¹ f(g x), so f̄(h x) = h f̄(x) for every element h. Only acting asks like
this (exploring, evaluation, stored and exported policies); learning sees the networks as they are.

The first m outputs of an actor are about the m actions themselves and change place and sign with them. What comes after
them, m numbers at a time, is about their deviations and only changes place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import array_api_compat

from euda.body.entry_map import EntryMap
from euda.body.layout import Layout
from euda.symmetry.element import Element


@dataclasses.dataclass(frozen=True, eq=False)
class Image:
    """One element: to the image of an observation, and back from the answer."""

    layout: Layout
    element: Element
    back: EntryMap
    """What undoes the element on actions."""
    places: EntryMap
    """The same without signs."""

    def answer(self, ask: Callable[[Any], Any], observations: Any) -> Any:
        """What `ask` says about the images of observations [..., dim], brought back."""
        outputs = ask(self.layout.act(self.element, observations))
        xp, width = array_api_compat.array_namespace(outputs), len(self.back.offset)
        parts = [outputs[..., i : i + width] for i in range(0, outputs.shape[-1], width)]
        return xp.concat([self.back(parts[0]), *map(self.places, parts[1:])], axis=-1)


def images(layout: Layout, elements: Sequence[Element]) -> tuple[Image, ...]:
    """What an average over the identity and these elements asks beside the observation itself."""
    made = []
    for element in elements:
        back = element.inverse().on_actions()
        places = dataclasses.replace(back, weight=abs(back.weight))
        made.append(Image(layout, element, back, places))
    return tuple(made)


def averaged(asked: Sequence[Image], ask: Callable[[Any], Any], observations: Any) -> Any:
    """The mean of what `ask` says about observations [..., dim] and about their images."""
    total = ask(observations)
    for image in asked:
        total = total + image.answer(ask, observations)
    return total / (1 + len(asked)) if asked else total
