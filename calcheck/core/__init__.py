"""What every room uses: the version, text, checks, memory, descriptions of metrics, modules that load when used."""

from importlib import import_module
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "__version__", "la", "sc"]
__version__ = "0.1.0"


class LazyModule(ModuleType):
    """Stands for the module of the same name, which is loaded when an attribute is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(modules.get(self.__name__) or import_module(self.__name__), name)


if TYPE_CHECKING:
    from scipy import linalg as la
    from scipy import special as sc
else:
    la, sc = LazyModule("scipy.linalg"), LazyModule("scipy.special")
