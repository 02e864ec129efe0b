"""Dataclasses as arrays: what was stored comes back with its declared types, and nothing else is taken for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from calcheck.kernels.kernel_functions import Kernel, Polynomial, Rbf
from calcheck.storage.archives import from_arrays, to_arrays


@dataclass
class Part:
    share: float
    names: tuple[str, ...] = ()


@dataclass
class Whole:
    n: int
    on: bool
    mode: Literal["fast", "exact"]
    part: Part
    kernel: Kernel
    values: NDArray[np.float64]
    named: dict[str, NDArray[Any]]
    blocks: dict[str, list[NDArray[Any]]]
    told: dict[str, Any]
    square: NDArray[np.float64] | None = None
    reference: float | None = None


def whole(**changed):
    known = {
        "n": 3,
        "on": True,
        "mode": "exact",
        "part": Part(0.25, ("a", "ä b")),
        "kernel": Polynomial(2, 0.5, 1.0),
        "values": np.arange(6.0).reshape(2, 3).T,
        "named": {"x": np.array(7), "subclass": np.zeros((0, 2))},
        "blocks": {"u": [np.arange(2), np.arange(3)]},
        "told": {"rows": [1, 2.5, None], "why": "é"},
    }
    return Whole(**(known | changed))


def test_fields_are_arrays_with_the_names_of_their_paths():
    names = set(to_arrays("w", whole(), Whole))
    kernel = {f"w.kernel.{name}" for name in ("degree", "gamma", "coef0", "subclass")}
    plain = {f"w.{name}" for name in ("n", "on", "mode", "values", "told")}
    nested = {"w.part.share", "w.part.names", "w.named.x", "w.named.subclass", "w.blocks.u"}
    assert names == plain | nested | kernel


def test_a_dataclass_comes_back_with_its_types():
    known = whole(reference=0.5)
    back = from_arrays("w", Whole, to_arrays("w", known, Whole) | {"other": np.ones(2)})
    for name in ("n", "on", "mode", "part", "kernel", "told", "reference", "square"):
        assert getattr(back, name) == getattr(known, name)
        assert type(getattr(back, name)) is type(getattr(known, name))
    assert_array_equal(back.values, known.values)
    assert back.values.flags.c_contiguous
    assert (back.named["x"].shape, back.named["subclass"].shape) == ((), (0, 2))
    assert len(back.blocks["u"]) == 1
    assert_array_equal(back.blocks["u"][0], [0, 1, 0, 1, 2])


def test_no_texts_are_no_texts():
    assert from_arrays("p", Part, to_arrays("p", Part(1.0), Part)) == Part(1.0)


def test_nothing_is_stored_of_none():
    assert to_arrays("settings", None, type(None)) == {}
    assert from_arrays("settings", type(None), {"settings.x": np.ones(1)}) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"w.n": np.ones(2)},
        {"w.n": np.array("x")},
        {"w.n": np.array(np.nan)},
        {"w.part.share": np.array("x")},
        {"w.part.names": np.array("x")},
        {"w.mode": np.array("odd")},
        {"w.kernel.subclass": np.array("Whole")},
        {"w.kernel.subclass": np.array("Rbf"), "w.kernel.gamma": np.ones(3)},
        {"w.told": np.array("{")},
        {"w.told": np.array("3")},
        {"w.told": np.array(3)},
    ],
    ids=str,
)
def test_what_has_other_types_is_refused(broken):
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_arrays("w", Whole, to_arrays("w", whole(), Whole) | broken)


@pytest.mark.parametrize(
    "absent", ["w.n", "w.values", "w.part.share", "w.kernel.degree", "w.kernel.subclass", "w.told"]
)
def test_what_lacks_a_field_is_refused(absent):
    arrays = to_arrays("w", whole(), Whole)
    del arrays[absent]
    with pytest.raises((KeyError, TypeError)):
        from_arrays("w", Whole, arrays)


def test_only_subclasses_of_the_declared_class_are_made():
    arrays = to_arrays("k", Rbf(2.0), Kernel)
    assert from_arrays("k", Kernel, arrays) == Rbf(2.0)
    with pytest.raises((KeyError, TypeError)):
        from_arrays("k", Part, arrays)
