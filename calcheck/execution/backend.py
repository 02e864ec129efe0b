"""Array backends: numpy, or torch on any of its devices, with one namespace."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from calcheck.errors import OptionError
from calcheck.typing import AnyArray, Array, Indices, Precision, Values

MAX_REASON = 80  # Maximum number of characters of torch's message in errors


def namespace(array: Array) -> ModuleType:
    """Return the array API namespace of an array: numpy itself, or for torch array_api_compat, which takes 0.2 s."""
    if isinstance(array, np.ndarray):
        return np
    import array_api_compat

    found: ModuleType = array_api_compat.array_namespace(array)
    return found


def is_cpu(array: Array) -> bool:
    """Return whether an array is in main memory, not on an accelerator."""
    return isinstance(array, np.ndarray) or array.device.type == "cpu"


@dataclass(frozen=True)
class Backend:
    """An array library with a device and a precision."""

    xp: Any  # The array API namespace
    dtype: Any  # The floating-point type of that namespace
    device: str | None = None  # The device; None for numpy

    def asarray(self, values: AnyArray) -> Array:
        """Return numpy values as an array on the device, in the backend's precision; torch warns of read-only ones."""
        if self.device is None:
            return np.asarray(values, dtype=self.dtype)
        return self.xp.asarray(np.require(values, requirements=["C", "W"]), dtype=self.dtype, device=self.device)

    def indices(self, rows: Indices) -> Array:
        """Return row numbers as an array on the device."""
        return rows if self.device is None else self.xp.asarray(rows, device=self.device)

    def to_numpy(self, array: Array) -> Values:
        """Return an array as a float64 numpy array."""
        if self.device is None:
            return np.asarray(array, dtype=np.float64)
        return np.asarray(array.cpu().numpy(), dtype=np.float64)

    @property
    def itemsize(self) -> int:
        """The size of one number, in bytes."""
        return int(self.xp.finfo(self.dtype).bits) // 8


def backend(device: str | None, precision: Precision) -> Backend:
    """Return the numpy backend, or the torch backend for a device."""
    if device is None:
        return Backend(np, np.dtype(precision))
    try:
        import array_api_compat.torch as xp
        import torch
    except ImportError as error:
        raise OptionError("--device needs torch, which is not installed: pip install 'calcheck[torch]'") from error

    dtype = getattr(torch, precision)
    try:
        torch.zeros(1, dtype=dtype, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:MAX_REASON]
        msg = f"torch cannot use device {device!r} in {precision} here ({reason}). Examples: cpu, cuda, cuda:1, mps"
        raise OptionError(msg) from error
    return Backend(xp, dtype, device)
