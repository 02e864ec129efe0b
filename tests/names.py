"""Lint for names, `python -m tests.names`: no bare participles or prepositions, no archaic words in names of tests."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REFUSED = frozenset(
    """
    told said held kept taken made found given left own each of over within under beside elsewhere apart once again
    like asked met seen placed laid drawn joined gathered spoken spelled sent raised chosen described recorded referred
    matched located opened shown judged restored prepared summed simulated swapped exchanged everywhere unseen words
    """.split()  # noqa: SIM905 - a list of 50 lines says no more
)
"""Words that say nothing about the thing that they name; as parts of a name (`bins_of`, `rows_left`) they are fine."""

EXCEPTIONS: dict[str, str] = {
    "calcheck.studies.gate.rules.Comparison.left": "the operand before the operator, beside `operator` and `right`",
    "calcheck.reports.Gate.judged": "the opposite of the outcome `not judged`, beside `passed` in the JSON report",
    "calcheck.reports.conclusion.Effect.within": "the word beside a tolerance, in the JSON report and in rules",
    "calcheck.reports.conclusion.WidthFactor.within": "the same",
    "calcheck.conclusion.answer.Decision.within": "the same, of each estimate",
}
"""Qualified names that are such a word, and the reason why each is the right name."""

TEST_WORDS = frozenset(
    """
    told tells said says held hang hangs luck had centre centres whatever looked asked met seen sees parted anew afresh
    dear
    """.split()  # noqa: SIM905 - as above
)
"""Words that no name of a test function contains: there is a standard or plainer one."""


def refused_names(package):
    """Return the public names of a package that are a refused word, with file and line, by qualified name.

    Public are modules, classes, functions, methods, properties and annotated attributes (fields of dataclasses) whose
    name and owners do not start with an underscore.
    """
    found = {}
    for path in sorted(package.rglob("*.py")):
        module = [package.name, *path.relative_to(package).with_suffix("").parts]
        module = module[:-1] if module[-1] == "__init__" else module
        place = path.relative_to(package.parent)
        if _is_refused(module[-1]):
            found[".".join(module)] = f"{place}:1"
        for name, line in _definitions(ast.parse(path.read_text(encoding="utf-8")).body):
            if _is_refused(name.rpartition(".")[2]):
                found[".".join([*module, name])] = f"{place}:{line}"
    return found


def problems(found, exceptions):
    """Return a line for each refused name without a reason, and for each exception that no name needs."""
    bad = [
        f"{where}: {name} is a participle or a preposition. Name it after the thing that it is, or give a reason in"
        " EXCEPTIONS of tests/names.py"
        for name, where in found.items()
        if not exceptions.get(name)
    ]
    stale = [f"tests/names.py: no public name is {name}: remove the exception" for name in exceptions.keys() - found]
    return bad + sorted(stale)


def problems_of_tests(folder):
    """Return a line for each test function below a folder whose name contains one of the words for tests."""
    return [
        f"{path.relative_to(folder.parent)}:{line}: {name} contains {', '.join(words)}: use a standard term"
        for path in sorted(folder.rglob("test_*.py"))
        for name, line in _definitions(ast.parse(path.read_text(encoding="utf-8")).body)
        if name.startswith("test_") and (words := sorted(TEST_WORDS.intersection(name.split("_"))))
    ]


def _is_refused(name):
    return name.strip("_").lower() in REFUSED


def _definitions(body, owner=""):
    """Yield the public names that statements define, with their lines; those within classes have their owner's name."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            yield from _definitions([*statement.body, *getattr(statement, "orelse", [])], owner)
        name = _defined(statement, owner)
        if name is None or name.startswith("_"):
            continue
        yield owner + name, statement.lineno
        if isinstance(statement, ast.ClassDef):
            yield from _definitions(statement.body, f"{owner}{name}.")


def _defined(statement, owner):
    """Return the name that a statement defines, None if it defines none that is looked at."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name
    if owner and isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return None


def main():
    """Print what is wrong; fail if anything is."""
    lines = problems(refused_names(ROOT / "calcheck"), EXCEPTIONS)
    lines += problems_of_tests(ROOT / "tests")
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
