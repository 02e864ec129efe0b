"""The lint for names reports refused names and nothing else."""

import pytest

from tests.names import problems, problems_of_tests, refused_names


@pytest.fixture
def package(tmp_path):
    """Return a function that writes a module of a package, and returns the names found in the package."""

    def write(text, module="good.py"):
        folder = tmp_path / "pkg"
        (folder / module).parent.mkdir(parents=True, exist_ok=True)
        (folder / module).write_text(text)
        return refused_names(folder)

    return write


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("def told():\n    pass\n", "told", 1),
        ("\n\nclass Found:\n    pass\n", "Found", 3),
        ("class Report:\n    kept: int = 0\n", "Report.kept", 2),
        ("class Report:\n    def said(self):\n        pass\n", "Report.said", 2),
        ("class Report:\n    @property\n    def own(self):\n        return 1\n", "Report.own", 3),
        ("class Report:\n    class Each:\n        of_: int\n", "Report.Each", 2),
        ("if True:\n    async def over():\n        pass\n", "over", 2),
    ],
)
def test_a_bad_name_is_found(package, text, name, line):
    assert package(text)[f"pkg.good.{name}"] == f"pkg/good.py:{line}"


def test_modules_and_packages_are_checked(package):
    assert package("", "words.py") == {"pkg.words": "pkg/words.py:1"}
    assert package("", "beside/__init__.py")["pkg.beside"] == "pkg/beside/__init__.py:1"


@pytest.mark.parametrize(
    "text",
    [
        "def bins_of():\n    pass\n",
        "def _told():\n    pass\n",
        "class _Reader:\n    kept: int\n",
        "class Reader:\n    _kept: int\n    def run(self):\n        def told():\n            left: int = 1\n",
        "found = 1\n",
    ],
)
def test_parts_of_names_private_names_and_variables_are_not_refused(package, text):
    assert package(text) == {}


def test_exceptions_need_a_reason_and_a_name():
    found = {"pkg.a.left": "pkg/a.py:1"}
    assert problems(found, {"pkg.a.left": "beside right"}) == []
    assert problems(found, {"pkg.a.left": ""})[0].startswith("pkg/a.py:1: pkg.a.left is a participle")
    assert problems({}, {"pkg.a.left": "gone"}) == [
        "tests/names.py: no public name is pkg.a.left: remove the exception"
    ]


def test_archaic_words_in_names_of_tests_are_reported(tmp_path):
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_a.py").write_text("def told():\n    pass\n\n\ndef test_it_is_told():\n    pass\n")
    (folder / "helper.py").write_text("def test_it_is_told():\n    pass\n")
    assert problems_of_tests(folder) == ["tests/test_a.py:5: test_it_is_told contains told: use a standard term"]


def test_a_word_within_a_word_is_not_reported(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_thresholds_shadow_metrics():\n    pass\n")
    assert problems_of_tests(tmp_path) == []
