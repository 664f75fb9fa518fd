"""`Layout.rotate` on PyTorch: the same numbers as NumPy, in any batch shape, with gradients."""

import math

import numpy as np
import pytest
import torch

from euda import Field, Kind, Layout
from euda.errors import LayoutError
from euda.testing import assert_equivariant, random_observations

LAYOUT = Layout(tuple(Field(kind.value, kind, 2) for kind in Kind))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_torch_agrees_with_numpy(dtype, shape):
    rng = np.random.default_rng(0)
    x = random_observations(LAYOUT, math.prod(shape), rng).reshape(*shape, LAYOUT.dim)
    yaw = rng.uniform(-3, 3, shape)
    turned = LAYOUT.rotate(torch.as_tensor(x, dtype=dtype), torch.as_tensor(yaw, dtype=dtype))
    assert (turned.dtype, tuple(turned.shape)) == (dtype, x.shape)
    np.testing.assert_allclose(turned.numpy(), LAYOUT.rotate(x, yaw), atol=1e-5 if dtype == torch.float32 else 1e-12)


def test_gradients_flow_through_and_inputs_stay():
    x = torch.as_tensor(random_observations(LAYOUT, 4, np.random.default_rng(1)), dtype=torch.float64).requires_grad_()
    before = x.detach().clone()
    LAYOUT.rotate(x, 0.7).square().sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert torch.equal(x.detach(), before)


def test_assert_equivariant_with_torch():
    vectors = Layout((Field("a", Kind.VECTOR), Field("b", Kind.VECTOR)))
    assert_equivariant(lambda x: (x[:, :3] * x[:, 3:]).sum(-1), vectors, convert=torch.as_tensor)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(lambda x: x[:, 0], vectors, convert=torch.as_tensor)


def test_whole_numbers_are_refused():
    with pytest.raises(LayoutError, match="floating point"):
        LAYOUT.rotate(torch.zeros(LAYOUT.dim, dtype=torch.int64), 0.1)
