"""Array libraries behind one namespace: numpy, or torch on any of its devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calcheck.errors import OptionError

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

LONGEST_REASON = 80  # of what torch says, in characters
Array = Any  # an array of the backend's library: the array-API standard has no type for it yet
Precision = Literal["float32", "float64"]


def namespace(array: Array) -> ModuleType:
    """Return the array-API namespace of an array.

    numpy implements the standard itself since 2.0; array_api_compat, 0.2 s to import, is for torch only.
    """
    if isinstance(array, np.ndarray):
        return np
    import array_api_compat

    found: ModuleType = array_api_compat.array_namespace(array)
    return found


def is_cpu(array: Array) -> bool:
    """Say whether an array is where numpy's are, and not on a device of its own."""
    return isinstance(array, np.ndarray) or array.device.type == "cpu"


@dataclass(frozen=True)
class Backend:
    """One array library at one device and precision.

    Parameters
    ----------
    xp : module
        The array-API namespace.
    dtype : Any
        The floating type, of that namespace.
    device : str or None
        The device, None for numpy.
    """

    xp: Any
    dtype: Any
    device: str | None = None

    def asarray(self, values: NDArray[Any]) -> Array:
        """Bring numpy values to the device, in the backend's precision."""
        if self.device is None:
            return np.asarray(values, dtype=self.dtype)
        return self.xp.asarray(np.ascontiguousarray(values), dtype=self.dtype, device=self.device)

    def indices(self, rows: NDArray[np.intp]) -> Array:
        """Bring row numbers to the device."""
        return rows if self.device is None else self.xp.asarray(rows, device=self.device)

    def to_numpy(self, array: Array) -> NDArray[np.float64]:
        """Bring an array back, as float64."""
        if self.device is None:
            return np.asarray(array, dtype=np.float64)
        return np.asarray(array.cpu().numpy(), dtype=np.float64)

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return int(self.xp.finfo(self.dtype).bits) // 8


def backend(device: str | None, precision: Precision) -> Backend:
    """Choose numpy, or torch where a device is named.

    Parameters
    ----------
    device : str or None
        A device as torch names it (``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``); None for numpy.
    precision : str
        ``"float32"`` or ``"float64"``.

    Raises
    ------
    OptionError
        torch has no such device here, or the device has no such precision.
    """
    if device is None:
        return Backend(np, np.dtype(precision))
    import array_api_compat.torch as xp
    import torch

    dtype = getattr(torch, precision)
    try:
        torch.zeros(1, dtype=dtype, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:LONGEST_REASON]
        msg = f"torch cannot use device {device!r} in {precision} here ({reason}). Known ones: cpu, cuda, cuda:1, mps"
        raise OptionError(msg) from error
    return Backend(xp, dtype, device)
