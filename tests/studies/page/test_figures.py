"""Tables of the numbers that pictures show."""

from calcheck.charts.picture import Axis, Bars, Cells, Line, Panel, Picture, Points, Rule
from calcheck.render.page import figure


def tables_of(*marks, **axes):
    return figure(Picture((Panel(marks, **axes),))).numbers


def texts(table):
    return [[cell.text for cell in row] for row in table.rows]


def test_each_mark_has_a_table_of_its_coordinates():
    line, bars = tables_of(
        Line([0, 1], [2, 3], "observed"),
        Bars([0], [0.5], [0], [7], "rows"),
        Rule(y=1),
        x=Axis("level"),
        y=Axis("share"),
    )
    assert line.title == "observed"
    assert [column.name for column in line.columns] == ["level", "share"]
    assert texts(line) == [["0", "2"], ["1", "3"]]
    assert [column.name for column in bars.columns] == ["level from", "level to", "low", "high"]


def test_categories_are_shown_by_their_names_and_horizontal_limits_as_numbers():
    (table,) = tables_of(Points([0.5], [1], "difference", [0.1], [0.9], horizontal=True), y=Axis(names=("a", "b")))
    assert texts(table) == [["0.5", "b", "0.1", "0.9"]]


def test_maps_list_the_cells_with_the_largest_values():
    count = 150
    edges = [float(place) for place in range(count)]
    values = [float("nan") if place == 149 else place - 75.0 for place in range(count)]
    (table,) = tables_of(Cells(edges, edges, edges, edges, values, "deviation", middle=0.0))
    assert table.title == "deviation · the 50 largest of 150 values"
    assert len(table.rows) == 50
    assert [row[-1].text for row in table.rows[:3]] == ["-75", "-74", "-73"]
