"""Mirrored and relabelled transitions are what the simulator does, and what the networks see of them fits."""

from __future__ import annotations

import functools

import jax
import mujoco
import numpy as np
import pytest
from simulated import assert_simulated, rollout
from symmetric_robots import star

import euda
from euda.agents.frames import own_frame, root_frame
from euda.agents.normaliser import symmetric
from euda.errors import EudaError
from euda.replay.augmentation import make_augmentation, unchanged
from euda.replay.buffer import Transition
from euda.replay.settings import AugmentationConfig
from euda.tasks import table

MIRRORED = [task for task in euda.TASKS if task not in ("cheetah_run", "hopper_hop")]  # theirs are trivial
CASES = [(task, "mirror", "default") for task in MIRRORED]
CASES += [(task, "all", "elliptic") for task in MIRRORED if task != "humanoid_stand"]  # its reward follows world axes
COUNT = 24


@functools.cache
def env_of(task: str, cone: str):
    return euda.make(task, cone=cone, seed=0)


@functools.cache
def mirror_of(task: str):
    return euda.symmetries(euda.make(task).model).elements[1]


def transitions(env, count):
    """States of a rollout, and what happened there: single steps, so that one step of the simulator is a check."""
    states, (s, a, r, following) = rollout(env, count)
    return states, Transition(s, a, r, np.full_like(r, 0.99), following)


@pytest.mark.parametrize(("task", "group", "cone"), CASES)
def test_augmented_transitions_are_what_the_simulator_does(task, group, cone):
    env, mirror = env_of(task, cone), mirror_of(task)
    identity = euda.symmetries(env.model).elements[0]
    states, batch = transitions(env, COUNT)
    augment = make_augmentation(AugmentationConfig("rotate", 1.0), env.layout, group, [mirror])
    after = Transition(*(np.asarray(array) for array in jax.jit(augment)(jax.random.key(0), batch)))
    assert np.array_equal(after.reward, batch.reward)
    assert np.array_equal(after.discount, batch.discount)
    stored, changed = ([x.observation, x.action, x.reward, x.next_observation] for x in (batch, after))
    kinds = assert_simulated(env, [identity, mirror], states, stored, changed, yaws=group == "all")
    assert set(kinds) == {False, True}


def test_a_wrong_mirror_is_noticed_by_this_test():
    """The mirror of actions alone, or of observations alone, is off by far more than the tolerance above."""
    env, mirror = env_of("walker3d_run", "default"), mirror_of("walker3d_run")
    states, batch = transitions(env, 4)
    errors = []
    for row, state in enumerate(states):
        env.set_state(state)
        mirror.apply(env.robot)
        mujoco.mj_step1(env.model, env.data)
        env.set_control(batch.action[row])  # not mirrored
        env.advance()
        errors.append(np.abs(env.observe() - env.layout.act(mirror, batch.next_observation[row])).max())
    assert max(errors) > 0.1


def test_elements_are_drawn_alike_for_exactly_the_share():
    model = star(6)
    env = euda.ModelEnv(model)
    group = euda.symmetries(model)
    rng, size = np.random.default_rng(0), 4096
    shapes = ((size, env.layout.dim), (size, model.nu), (size,), (size,), (size, env.layout.dim))
    batch = Transition(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    augment = make_augmentation(AugmentationConfig("rotate", 0.75), env.layout, "mirror", group.elements[1:])
    after = Transition(*(np.asarray(array) for array in jax.jit(augment)(jax.random.key(1), batch)))
    assert all(np.array_equal(old[3072:], new[3072:]) for old, new in zip(batch, after, strict=True))
    images = np.stack([env.actions.act(element, batch.action) for element in group])
    which = np.abs(images - after.action).max(axis=2).argmin(axis=0)[:3072]
    counts = np.bincount(which, minlength=group.order)
    assert np.abs(counts / 3072 - 1 / group.order).max() < 0.02
    for place, element in enumerate(group):
        rows = np.flatnonzero(which == place)[:5]
        for name in ("observation", "next_observation"):
            expected = env.layout.act(element, getattr(batch, name)[rows])
            np.testing.assert_allclose(getattr(after, name)[rows], expected, atol=1e-5)


def test_groups_without_elements_and_rows_without_symmetry_change_nothing_more():
    layout = env_of("reacher_hard", "default").layout
    assert make_augmentation(AugmentationConfig("rotate"), layout, "mirror") is unchanged
    with pytest.raises(EudaError, match=r"unknown group 'mirrors'.*valid are yaw, mirror, all"):
        make_augmentation(AugmentationConfig("rotate"), layout, "mirrors")
    batch = Transition(
        *(np.ones(shape, np.float32) for shape in ((8, layout.dim), (8, 2), (8,), (8,), (8, layout.dim)))
    )
    elements = [mirror_of("reacher_hard")]
    for name in ("gaussian", "scale"):
        plain, with_group = (
            make_augmentation(AugmentationConfig(name), layout, *more)(jax.random.key(0), batch)
            for more in ((), ("all", elements))
        )
        assert all(np.array_equal(a, b) for a, b in zip(plain, with_group, strict=True))


@pytest.mark.parametrize("make_frame", [None, own_frame, root_frame])
@pytest.mark.parametrize("task", euda.TASKS)
def test_normalising_commutes_with_every_element_of_every_task(task, make_frame):
    env, rng = env_of(task, "default"), np.random.default_rng(0)
    rows = [env.reset(seed=0)[0]] + [env.step(rng.uniform(-1, 1, env.model.nu))[0] for _ in range(60)]
    layout, observations = env.layout, np.array(rows, np.float64)
    elements = euda.symmetries(env.model).elements[1:]
    target = table.find(task).target
    frame = make_frame(layout, None if target is None else target.limb) if make_frame else None
    maps = [
        one.on_observations(layout) if frame is None else frame.seen(one.on_observations(layout)) for one in elements
    ]
    normaliser = symmetric(layout, 10.0, is_turned=frame is not None, maps=maps)
    moments = normaliser.begin()
    for row in observations:
        moments = normaliser.observe(moments, row if frame is None else frame(np, row))
    statistics = normaliser.statistics(moments)

    def seen(x):
        return normaliser(np, statistics, x if frame is None else frame(np, x))

    for element, entries in zip(elements, maps, strict=True):
        images = np.array([layout.act(element, row) for row in observations])
        np.testing.assert_allclose(seen(images), entries(seen(observations)), atol=1e-5)
