"""The versions of calcheck, of Python and of the libraries, without importing the libraries."""

from __future__ import annotations

from calcheck.version import __version__

LIBRARIES = (
    *("numpy", "scipy", "pandas", "pyarrow", "scoringrules", "torch", "array-api-compat", "threadpoolctl"),
    *("typer", "pydantic", "rich", "vl-convert-python"),
    *("h5py", "distributed"),
)
"""The dependencies, with those of extras last."""


def describe_versions() -> str:
    """Return the version of calcheck, and in further lines those of Python and of each dependency."""
    import platform

    versions = {"calcheck": __version__, "Python": platform.python_version()}
    versions |= {library: _version(library) for library in LIBRARIES}
    return "".join(f"{name} {version}\n" for name, version in versions.items())


def _version(library: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return "(not installed)"
