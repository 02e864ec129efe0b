"""Specifications of pictures for a browser, and the scripts that draw them."""

import pytest
import vl_convert

from calcheck.charts import drawing
from calcheck.charts.drawing import javascript, panel_specs, replaceable, selectable
from calcheck.charts.picture import Axis, Cells, Panel, Picture, Rule

MAP = Picture(
    (Panel((Cells([0.0], [1.0], [0.0], [1.0], [0.5]), Rule(x=0.5)), Axis("a"), Axis("b")),), "title", "expected", "map"
)


def test_layers_have_named_data_and_the_first_one_a_selection():
    spec = selectable(*panel_specs(MAP))
    assert [layer["data"]["name"] for layer in spec["layer"]] == ["layer 0", "layer 1"]
    assert spec["layer"][0]["params"] == [{"name": "region", "select": {"type": "interval"}}]
    assert "title" not in spec
    assert "params" not in replaceable(*panel_specs(MAP))["layer"][0]


def test_a_specification_for_a_browser_is_valid():
    assert vl_convert.vegalite_to_svg(selectable(*panel_specs(MAP)), vl_version="6.4").startswith("<svg")


@pytest.mark.slow
def test_the_scripts_are_kept_in_the_folder_for_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(drawing.sys, "platform", "linux")
    text = javascript()
    (kept,) = (tmp_path / "calcheck").iterdir()
    assert kept.read_text(encoding="utf-8") == text
    assert "vegaEmbed" in text
    assert "</script" not in text.lower()
    kept.write_text("kept", encoding="utf-8")
    assert javascript() == "kept"


def test_without_a_folder_for_caches_the_scripts_are_made_each_time(tmp_path, monkeypatch):
    occupied = tmp_path / "file"
    occupied.write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(occupied))
    monkeypatch.setattr(drawing.sys, "platform", "linux")
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda **_: "made")
    assert javascript() == "made"
    assert occupied.read_text(encoding="utf-8") == ""
