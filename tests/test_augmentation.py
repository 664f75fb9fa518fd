"""Augmentations: exact shares, one yaw for both observations, nothing else touched, the right distributions."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from euda.body.layout import Field, Kind, Layout
from euda.errors import EudaError
from euda.replay.augmentation import Augmentation, make_augmentation, unchanged
from euda.replay.buffer import Transition
from euda.replay.settings import AUGMENTATIONS, AugmentationConfig, AugmentationRow, GaussianConfig, ScaleConfig
from euda.schema import Settings

LAYOUT = Layout(
    (
        Field("velocity", Kind.VECTOR, 2),
        Field("height", Kind.SCALAR),
        Field("heading", Kind.HEADING),
        Field("aim", Kind.PLANAR),
    )
)


def batch_of(size: int, seed: int = 0) -> Transition:
    draw = np.random.default_rng(seed)
    arrays = (
        draw.normal(size=shape).astype(np.float32)
        for shape in ((size, LAYOUT.dim), (size, 2), (size,), (size,), (size, LAYOUT.dim))
    )
    return Transition(*arrays)


def applied(config: AugmentationConfig, batch: Transition, seed: int = 0) -> Transition:
    changed = make_augmentation(config, LAYOUT)(jax.random.key(seed), batch)
    return Transition(*(np.asarray(array) for array in changed))


def yaws_of(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The angle by which the first velocity of each row was turned, in (-π, π]."""

    def angle(x: np.ndarray) -> np.ndarray:
        return np.arctan2(x[:, 1], x[:, 0])

    return np.angle(np.exp(1j * (angle(after) - angle(before))))


SHARES = [("rotate", size, share) for size in (7, 256) for share in (0.0, 0.001, 0.25, 0.3, 0.5, 1.0)]
SHARES += [(name, 8, share) for name in ("gaussian", "scale") for share in (0.3, 1.0)]


@pytest.mark.parametrize(("name", "size", "share"), SHARES)
def test_exactly_the_share_is_changed(name: str, size: int, share: float) -> None:
    batch = batch_of(size)
    after = make_augmentation(AugmentationConfig(name, share), LAYOUT)(jax.random.key(1), batch)
    for old, new in ((batch.observation, after.observation), (batch.next_observation, after.next_observation)):
        assert np.any(np.asarray(new) != old, axis=1).sum() == round(share * size)
        assert new.shape == old.shape
        assert new.dtype == np.float32


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_action_reward_and_discount_are_untouched(name: str) -> None:
    batch = batch_of(64)
    after = applied(AugmentationConfig(name), batch)
    for field in ("action", "reward", "discount"):
        assert np.array_equal(getattr(batch, field), getattr(after, field))
    assert (AUGMENTATIONS[name].make is None) == np.array_equal(batch.observation, after.observation)


def test_rotation_is_the_layouts_by_one_yaw_for_both() -> None:
    batch = batch_of(256)
    after = applied(AugmentationConfig("rotate"), batch)
    yaws = yaws_of(batch.observation, after.observation)
    np.testing.assert_allclose(np.cos(yaws - yaws_of(batch.next_observation, after.next_observation)), 1, atol=1e-4)
    np.testing.assert_allclose(after.observation, LAYOUT.rotate(batch.observation.astype(float), yaws), atol=2e-3)
    np.testing.assert_allclose(
        after.next_observation, LAYOUT.rotate(batch.next_observation.astype(float), yaws), atol=2e-3
    )
    assert len(np.unique(yaws.round(5))) > 250  # one yaw per transition, not one per batch


def test_yaws_are_uniform_over_the_circle() -> None:
    batch = batch_of(20_000)
    yaws = yaws_of(batch.observation, applied(AugmentationConfig("rotate"), batch).observation)
    counts, _ = np.histogram(yaws, bins=16, range=(-np.pi, np.pi))
    assert counts.sum() == 20_000
    assert np.sum((counts - 1250) ** 2 / 1250) < 45  # 15 degrees of freedom: p < 0.0001


@pytest.mark.parametrize("same", [True, False])
def test_gaussian_statistics_and_sharing(same: bool) -> None:
    batch = batch_of(20_000)
    after = applied(AugmentationConfig("gaussian", settings=GaussianConfig(same_noise=same)), batch)
    z, z_next = after.observation - batch.observation, after.next_observation - batch.next_observation
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose(np.cov(z.T), np.eye(LAYOUT.dim), atol=0.05)
    np.testing.assert_allclose(np.mean(z * z_next), 1.0 if same else 0.0, atol=0.02)
    if same:
        np.testing.assert_allclose(z, z_next, atol=1e-5)


@pytest.mark.parametrize("same", [True, False])
def test_scale_statistics_and_sharing(same: bool) -> None:
    batch = batch_of(20_000)
    batch = batch._replace(
        observation=np.abs(batch.observation) + 1, next_observation=np.abs(batch.next_observation) + 1
    )
    after = applied(AugmentationConfig("scale", settings=ScaleConfig(same_noise=same)), batch)
    z, z_next = after.observation / batch.observation, after.next_observation / batch.next_observation
    assert z.min() >= 0.5 - 1e-6
    assert z.max() <= 1 + 1e-6
    np.testing.assert_allclose(z.mean(axis=0), 0.75, atol=0.01)
    np.testing.assert_allclose(
        np.cov(z.T), np.eye(LAYOUT.dim) / 48, atol=0.002
    )  # independent entries, variance 0.5² / 12
    np.testing.assert_allclose(np.corrcoef(z.ravel(), z_next.ravel())[0, 1], 1.0 if same else 0.0, atol=0.02)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_same_key_same_bytes(name: str) -> None:
    batch, config = batch_of(64), AugmentationConfig(name)
    first, second, other = (applied(config, batch, seed).observation for seed in (3, 3, 4))
    assert first.tobytes() == second.tobytes()
    assert (AUGMENTATIONS[name].make is None) == (first.tobytes() == other.tobytes())


@pytest.mark.parametrize(
    ("base", "changed"),
    [
        (AugmentationConfig(), AugmentationConfig("gaussian")),
        (AugmentationConfig("rotate"), AugmentationConfig("rotate", share=0.5)),
        (AugmentationConfig("gaussian"), AugmentationConfig("gaussian", settings=GaussianConfig(same_noise=False))),
        (AugmentationConfig("gaussian"), AugmentationConfig("gaussian", settings=GaussianConfig(stddev=0.1))),
        (AugmentationConfig("scale"), AugmentationConfig("scale", settings=ScaleConfig(low=0.9))),
        (AugmentationConfig("scale"), AugmentationConfig("scale", settings=ScaleConfig(high=1.5))),
    ],
)
def test_every_field_does_something(base: AugmentationConfig, changed: AugmentationConfig) -> None:
    batch = batch_of(32)
    first, second = (
        np.concatenate([a.observation, a.next_observation]) for a in (applied(base, batch), applied(changed, batch))
    )
    assert np.isfinite(second).all()
    assert not np.array_equal(first, second)


def test_bad_input() -> None:
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(EudaError, match="share must be a finite number between 0 and 1"):
            AugmentationConfig("rotate", share=share)
    with pytest.raises(EudaError, match="did you mean 'rotate'"):
        AugmentationConfig("rotat")
    with pytest.raises(EudaError, match="low"):
        ScaleConfig(low=2.0)
    with pytest.raises(EudaError, match="'scale' has ScaleConfig, not GaussianConfig"):
        AugmentationConfig("scale", settings=GaussianConfig())
    with pytest.raises(EudaError, match="layout"):
        make_augmentation(AugmentationConfig("rotate"))


def test_rotating_what_does_not_turn_changes_nothing() -> None:
    """As with the joint features of a planar robot: allowed, so that every method runs on every task."""
    assert make_augmentation(AugmentationConfig("rotate"), Layout((Field("height", Kind.SCALAR),))) is unchanged


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_an_augmentation_may_change_actions_and_only_its_share_is_touched(share: float, monkeypatch) -> None:
    def mirrored(settings: Settings, layout: Layout | None) -> Augmentation:
        return lambda key, batch: batch._replace(observation=-batch.observation, action=-batch.action[:, ::-1])

    monkeypatch.setitem(AUGMENTATIONS, "mirrored", AugmentationRow(mirrored))
    batch, count = batch_of(8), round(8 * share)
    after = applied(AugmentationConfig("mirrored", share), batch)
    assert np.array_equal(after.action[:count], -batch.action[:count, ::-1])
    assert np.array_equal(after.observation[:count], -batch.observation[:count])
    assert np.array_equal(after.action[count:], batch.action[count:])
    assert np.array_equal(after.observation[count:], batch.observation[count:])
    for field in ("reward", "discount", "next_observation"):
        assert np.array_equal(getattr(after, field), getattr(batch, field))


def test_jitted_equals_eager() -> None:
    batch = batch_of(32)
    augment: Augmentation = make_augmentation(AugmentationConfig("rotate", 0.5), LAYOUT)
    for one, other in zip(augment(jax.random.key(0), batch), jax.jit(augment)(jax.random.key(0), batch), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
