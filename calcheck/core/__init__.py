"""What every room uses: the version, text, checks, memory, descriptions of metrics, modules that load when used."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from sys import modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar

__all__ = ["LazyModule", "Registry", "__version__", "la", "sc"]
__version__ = "0.1.0"
UNUSED = {"char", "core", "ctypeslib", "f2py", "ma", "polynomial", "rec", "strings", "testing", "typing"}
"""Submodules of NumPy that SciPy does not use as members of an array namespace."""


ItemT = TypeVar("ItemT")


class Registry(Mapping[str, ItemT]):
    """Objects by name, each imported when it is first used from its module, where its name is spelled differently."""

    def __init__(self, modules: Mapping[str, str], path: str, spell: Callable[[str], str]) -> None:
        self.modules, self._path, self._spell = dict(modules), path, spell

    def __getitem__(self, name: str) -> ItemT:
        module = import_module(self._path.format(self.modules[name]))
        found: ItemT = getattr(module, self._spell(name).replace("-", ""))
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def __or__(self, other: "Registry[ItemT]") -> Self:
        """Return the objects of both registries."""
        return type(self)({**self.modules, **other.modules}, self._path, self._spell)

    def without(self, *names: str) -> Self:
        """Return the registry without some objects."""
        kept = {name: module for name, module in self.modules.items() if name not in names}
        return type(self)(kept, self._path, self._spell)


class LazyModule(ModuleType):
    """Stands for the module of the same name, which is loaded when an attribute is first used."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(modules.get(self.__name__) or _loaded(self.__name__), name)
        setattr(self, name, found)  # the next use is as fast as that of any module
        return found


def _loaded(name: str) -> ModuleType:
    """Return an imported module; SciPy loads each submodule that NumPy lists, half of its time for those in UNUSED."""
    if not name.startswith("scipy"):
        return import_module(name)
    numpy: Any = import_module("numpy")
    listed, submodules = numpy.__all__, getattr(numpy, "__numpy_submodules__", set[str]())
    hidden = submodules & UNUSED
    submodules -= hidden
    numpy.__all__ = [each for each in listed if each not in hidden]
    try:
        return import_module(name)
    finally:
        submodules |= hidden
        numpy.__all__ = listed


if TYPE_CHECKING:
    from scipy import linalg as la
    from scipy import special as sc
else:
    la, sc = LazyModule("scipy.linalg"), LazyModule("scipy.special")
