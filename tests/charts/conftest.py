"""The engine of pictures as it is: tests of a picture that is drawn twice draw it twice."""

import pytest
import vl_convert


@pytest.fixture(autouse=True)
def drawn_each_time(engine, monkeypatch):
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", engine)
