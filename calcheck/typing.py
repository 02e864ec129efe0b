"""Types by the names that all modules use; at run time, those of arrays are a kind of Any, without NumPy."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values: TypeAlias = NDArray[np.float64]
    Floats: TypeAlias = NDArray[np.floating[Any]]
    Indices: TypeAlias = NDArray[np.intp]
    Mask: TypeAlias = NDArray[np.bool_]
    AnyArray: TypeAlias = NDArray[Any]
else:
    Values = Floats = Indices = Mask = AnyArray = Annotated[Any, "array"]

Precision: TypeAlias = Literal["float64", "float32"]

Array: TypeAlias = Any  # An array of any library; the array API standard does not define a type yet
