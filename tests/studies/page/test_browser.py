"""`calcheck report` in a browser: without a network, by mouse and keyboard, without scripts, on paper."""

import json
import re
import zlib

import numpy as np
import pytest
from scipy.stats import binom

import calcheck
from calcheck.cli.app import make_program
from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.predictions import Predictions
from calcheck.regions.maps import mean_square_limits
from tests.helpers.files import write
from tests.helpers.simulations import slow

N = 3000
SETTLED = 250  # Milliseconds after which a selection is drawn
QUANTILE = 1.6448536269514722  # of the normal distribution at 95 %
FAST = ("--metrics", "zms,coverage,pit", "--no-bootstrap", "--replicates", "39")


def report(folder, parts, *options, names=("preds",)):
    """Return the path of the page of one or several models with the same columns."""
    files = [write(folder / f"{name}.parquet", parts) for name in names]
    page = folder / "report.html"
    arguments = ["report", *files, "-o", str(page), *FAST, *options]
    make_program()(arguments, prog_name="calcheck", standalone_mode=False)
    return page


def columns(n=N):
    """Return predictions that are too narrow where a is large, with two inputs and a group."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0, 10, n), rng.normal(size=n)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return {
        "y": mean + std * rng.normal(size=n) * np.where(a > 7, 1.6, 1.0),
        "mean": mean,
        "std": std,
        "a": a,
        "b": b,
        "site": np.array(["north", "south", "west"])[rng.integers(0, 3, n)],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def page(folder):
    """The page of one model with two inputs."""
    return report(folder, columns(), "--inputs", "a,b")


def region_table(page):
    """Return the table about the region: texts by row."""
    rows = page.locator(".region tbody tr").all()
    return {cells[0]: cells[1:] for cells in (row.locator("td").all_inner_texts() for row in rows)}


def expected_table(parts, rows):
    """Return the table about some rows, from the rows themselves."""
    z = (parts["y"] - parts["mean"])[rows] / parts["std"][rows]
    n = len(z)
    inside = binom.ppf([0.025, 0.975], n, 0.9) / n
    low, high = mean_square_limits(np.array([n]), np.array([n]), np.array([2 * n]), 0.95)
    coverage, squares = np.mean(np.abs(z) <= QUANTILE), np.mean(z**2)
    return {
        "rows": [f"{n:,}", "–", "–"],
        "coverage of 90 % intervals": [
            f"{coverage:.3g}",
            f"{inside[0]:.3g} to {inside[1]:.3g}",
            "too narrow" if coverage < inside[0] else "too wide" if coverage > inside[1] else "inside",
        ],
        "mean squared z-score": [
            f"{squares:.3g}",
            f"{low[0]:.3g} to {high[0]:.3g}",
            "too wide" if squares < low else "too narrow" if squares > high else "inside",
        ],
    }


def rows_in(region, axes, parts):
    """Return which rows are in a region, by its name: ``"a 2.1 to 3.4, b up to 0.5"``."""
    chosen = np.ones(N, bool)
    for axis in axes:
        edges, values = np.array(axis["edges"]), parts[axis["name"]]
        shown = {f"{edge:.4g}": edge for edge in edges}
        number = r"(-?[\d.e-]+)"
        if found := re.search(rf"\b{axis['name']} {number} to {number}", region):
            chosen &= (shown[found[1]] <= values) & (values < shown[found[2]])
        elif found := re.search(rf"\b{axis['name']} up to {number}", region):
            chosen &= values < shown[found[1]]
        elif found := re.search(rf"\b{axis['name']} from {number}", region):
            chosen &= values >= shown[found[1]]
    return chosen


def map_data(page):
    return json.loads(page.locator(".linked-map > script").text_content())


def drag(page, start, stop):
    """Drag over the map, from one place to another, as shares of its width and height."""
    cells = page.locator(".map .layer_0_marks").first
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, stop)]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    page.mouse.up()
    page.wait_for_timeout(SETTLED)


@pytest.mark.slow
def test_the_page_is_complete_and_quiet(page, visit):
    shown = visit(page)
    assert shown.title() == "calcheck: preds"
    last = ["Metrics", "Groups", "Predictions", "Worst rows", "Settings", "Definitions", "Command"]
    assert shown.locator("h2").all_text_contents() == ["Answer", "Where", "How", *last]
    assert shown.locator("figure svg").count() >= 2


@pytest.mark.slow
def test_regions_of_dependent_rows_are_not_judged(visit, tmp_path):
    parts = columns() | {"patient": np.arange(N) // 10}
    shown = visit(report(tmp_path, parts, "--inputs", "a,b", "--cluster", "patient"))
    drag(shown, (0.72, 0.1), (0.98, 0.9))
    region = shown.locator(".region-name").inner_text()
    rows = rows_in(region, [map_data(shown)[name] for name in "xy"], parts)
    table, expected = region_table(shown), expected_table(parts, rows)
    assert expected["mean squared z-score"][2] == "too narrow"
    assert table == {name: [value, "–", "–"] for name, (value, *_) in expected.items()}
    assert shown.locator(".histogram svg").count() == 1


def test_a_drag_over_the_map_shows_what_the_rows_in_the_region_show(page, visit):
    shown, parts = visit(page), columns()
    for start, stop in (((0.72, 0.1), (0.98, 0.9)), ((0.1, 0.3), (0.4, 0.7))):
        drag(shown, start, stop)
        region = shown.locator(".region-name").inner_text()
        rows = rows_in(region, [map_data(shown)[name] for name in "xy"], parts)
        assert 100 < rows.sum() < N / 2, region
        table = region_table(shown)
        outside = table.pop("PIT bins beyond their limits")
        assert table == expected_table(parts, rows)
        counts = np.histogram(pit(parts)[rows], np.linspace(0, 1, 21))[0]
        low, high = binom.ppf([0.00125, 0.99875], rows.sum(), 0.05)
        assert outside[0] == str(np.sum((counts < low) | (counts > high)))
    assert table["mean squared z-score"][2] == "inside"


def pit(parts):
    from scipy.special import ndtr

    return ndtr((parts["y"] - parts["mean"]) / parts["std"])


def test_the_histogram_and_its_band_are_those_of_the_region(page, visit):
    shown, parts = visit(page), columns()
    drag(shown, (0.72, 0.02), (0.99, 0.98))
    rows = rows_in(shown.locator(".region-name").inner_text(), [map_data(shown)[name] for name in "xy"], parts)
    counts = np.histogram(pit(parts)[rows], np.linspace(0, 1, 21))[0]
    low, high = binom.ppf([0.00125, 0.99875], rows.sum(), 0.05)
    band, bars = (
        np.array(shown.locator(f".histogram .layer_{layer}_marks path").evaluate_all(HEIGHTS)) for layer in (0, 1)
    )
    np.testing.assert_allclose(bars / bars.sum(), counts / counts.sum(), atol=0.002)
    np.testing.assert_allclose(band / bars.sum(), (high - low) / counts.sum(), rtol=0.01)


HEIGHTS = "bars => bars.map(bar => bar.getBBox().height)"


def test_regions_are_chosen_by_keyboard(page, visit):
    shown, parts = visit(page), columns()
    shown.locator("select").focus()
    shown.keyboard.press("ArrowDown")
    region = shown.locator(".region-name").inner_text()
    assert region.startswith("a from ")
    rows = rows_in(region, [map_data(shown)[name] for name in "xy"], parts)
    table = region_table(shown)
    table.pop("PIT bins beyond their limits")
    assert table == expected_table(parts, rows)
    assert table["mean squared z-score"][2] == "too narrow"


def test_without_scripts_the_pictures_and_the_numbers_of_all_rows_are_there(page, visit):
    plain, lively = visit(page, scripts=False), visit(page)
    assert plain.locator(".map svg, .histogram svg").count() == 2
    assert not plain.locator(".choice").is_visible()
    assert region_table(plain) == region_table(lively)
    table = region_table(plain)
    table.pop("PIT bins beyond their limits")
    assert table == expected_table(columns(), np.ones(N, bool))


def test_a_click_on_a_head_sorts_by_numbers(page, visit):
    shown = visit(page)
    table = shown.locator("table.sortable").first
    head = table.locator("th", has_text="value")
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.locator("button").click()
        values = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
        assert values == sorted(values, key=lambda value: sign * value)
        assert head.get_attribute("aria-sort") == direction
    table.locator("th button", has_text="metric").click()
    names = table.locator("tbody td:first-child").all_inner_texts()
    assert names == sorted(names)
    assert head.get_attribute("aria-sort") is None


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "dark"), (1280, "light"), slow((390, "light")), slow((1280, "dark"))]
)
def test_the_page_is_as_wide_as_the_window(page, visit, width, scheme):
    shown = visit(page, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert shown.evaluate("document.documentElement.scrollWidth") == width


def test_the_first_screen_has_the_answer_its_picture_where_and_what_to_do(page, visit):
    shown = visit(page, viewport={"width": 1280, "height": 800})
    parts = [shown.locator(f"#answer {each}").first for each in (".answer span", "svg", "dd", "code")]
    boxes = [each.bounding_box() for each in parts]
    assert all(box["y"] + box["height"] <= 800 for box in boxes)
    assert boxes[0]["height"] > 30
    assert re.match(
        r"NO: (off by ≥ \d+ %|too narrow( where a>\S+)?, ×[\d.]+ \()",
        shown.locator("#answer .answer span").first.inner_text(),
    )
    assert boxes[0]["y"] < boxes[1]["y"]
    assert shown.locator("#answer dt").first.inner_text() == "where"
    assert shown.locator("#answer .next dt").all_inner_texts() == ["mend", "where", "look"]
    assert re.match(r"\d+ \w+ \d{4} · .*3,000 rows · .*SHA-256 \w{12}", shown.locator(".about").inner_text())


LEGIBLE = """texts => texts.map(text => {
    const {a, b} = text.getScreenCTM();
    return Math.hypot(a, b) * Number.parseFloat(getComputedStyle(text).fontSize);
})"""
OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.mark.parametrize("width", [390, slow(1280)])
def test_all_texts_of_charts_have_11_pixels_on_the_screen(page, visit, width):
    shown = visit(page, viewport={"width": width, "height": 800})
    few = shown.locator("svg text:visible").count()
    shown.evaluate(OPEN)
    sizes = shown.locator("svg text:visible").evaluate_all(LEGIBLE)
    assert len(sizes) > few > 50
    assert min(sizes) >= 11


def test_narrow_pages_have_legible_charts_and_tables_of_metric_value_and_verdict(page, visit):
    shown = visit(page, viewport={"width": 390, "height": 844}, color_scheme="dark")
    words = shown.locator("code > span").evaluate_all("all => all.map(each => [each.innerText, each.clientHeight])")
    assert len({height for word, height in words if word.startswith("--")}) == 1
    assert shown.locator("#metrics table").first.locator("th:visible").all_inner_texts() == [
        "metric",
        "value",
        "verdict",
    ]
    for table in ("#metrics table", ".region table"):
        assert shown.locator(table).first.evaluate("each => each.scrollWidth <= each.clientWidth"), table
    assert shown.locator("#how svg").first.evaluate("each => getComputedStyle(each).filter").startswith("invert")


def test_a_metric_leads_to_its_definition(page, visit):
    shown = visit(page)
    definition = shown.locator("dt", has_text=re.compile("^zms$"))
    assert not definition.is_visible()
    shown.locator("#metrics td a", has_text="zms").click()
    definition.wait_for(state="visible")


def test_the_region_of_the_sentence_is_that_of_the_map(page, visit):
    shown, parts = visit(page), columns()
    sentence = shown.locator("#answer dd").first.inner_text()
    limit, rows = re.match(r"a>([\d.]+) \(([\d,]+) of 3,000 rows\)", sentence).groups()
    shown.locator("select").select_option(index=1)
    assert shown.locator(".region-name").inner_text() == f"a from {limit}"
    assert region_table(shown)["rows"][0] == rows == f"{np.sum(parts['a'] > float(limit)):,}"
    assert shown.locator("figcaption", has_text="Local factor").inner_text().endswith("Dashed: the worst region.")


def test_on_paper_no_table_and_no_picture_is_cut(page, visit):
    """A page of paper with margins of 1 cm is 718 pixels wide."""
    shown = visit(page, viewport={"width": 718, "height": 1000})
    shown.emulate_media(media="print")
    widths = shown.locator("table:visible, svg:visible").evaluate_all(
        "all => all.map(each => Math.max(each.scrollWidth || 0, each.getBoundingClientRect().right))"
    )
    assert max(widths) <= 718
    assert not shown.locator(".choice").is_visible()
    paper = shown.pdf(prefer_css_page_size=True)
    assert re.findall(rb"/MediaBox \[0 0 (\d+)[.\d]* (\d+)", paper)[0] == (b"594", b"841")
    keys = shown.locator(".keys i").evaluate_all("all => all.map(each => getComputedStyle(each).printColorAdjust)")
    assert set(keys) == {"exact"}
    assert not shown.locator(".region").is_visible()  # of all rows, as the metrics
    shown.locator("select").evaluate("each => { each.value = 1; each.dispatchEvent(new Event('change')) }")
    assert shown.locator(".region").is_visible()


def drawn_texts(paper):
    """Return the number of drawn texts on each page of a PDF file."""
    streams = {
        number: zlib.decompress(content)
        for number, content in re.findall(
            rb"\n(\d+) 0 obj\n<<[^>]*FlateDecode[^>]*>>\s*stream\r?\n(.*?)endstream", paper, re.DOTALL
        )
    }
    pages = re.findall(rb"/Type\s*/Page\b.*?/Contents (\d+) 0 R", paper, re.DOTALL)
    return [len(re.findall(rb"T[jJ]\b", streams[number])) for number in pages]


HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "\"'><img src=x onerror='window.hacked = 1'>",
    "{{constructor.constructor('window.hacked = 1')()}} datum['a'].b\\",
    "x\u2028\u2029\u202e\x1b[2J\x07 a\nb",
    "<!-- ]]> <style>*{display:none}</style>",
)


@pytest.mark.parametrize("first", [slow(0), 2])
def test_no_name_runs_or_loads_anything(tmp_path, visit, first):
    """Names of models, inputs, groups and keys, and values of categories."""
    texts = [HOSTILE[(first + place) % len(HOSTILE)].replace(",", "") for place in range(5)]
    parts = columns(200)
    hostile = {"id": np.array([f"{texts[0]}{place}" for place in range(200)])}
    hostile |= {name: parts[name] for name in ("y", "mean", "std")} | {texts[1]: parts["a"], texts[2]: parts["b"]}
    hostile |= {f"{texts[3]}3": np.array([f"{texts[4]}{place % 2}" for place in range(200)])}
    names = ("--names", f"{texts[3]},{texts[4]}")
    shown = visit(report(tmp_path, hostile, "--inputs", f"{texts[1]},{texts[2]}", *names, names=("one", "two")))
    assert shown.locator(".linked-map").count() == 2
    drag(shown, (0.2, 0.2), (0.8, 0.8))
    shown.locator("th button").first.click()
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("img, iframe, object").count() == 0


def test_several_models_are_side_by_side(folder, visit):
    shown = visit(report(folder, columns(300), names=("first", "second")), viewport={"width": 1280, "height": 800})
    assert shown.locator(".linked-map").count() == 2
    sections = shown.locator("section", has=shown.get_by_role("heading", name="How", exact=True)).locator("h3")
    assert sections.all_inner_texts()[:4] == ["first", "second", "first", "second"]
    boxes = [each.bounding_box() for each in sections.all()[:2]]
    assert boxes[0]["y"] == boxes[1]["y"]
    answer = shown.locator("#answer section").first
    first, second = (answer.locator("svg").nth(place).bounding_box() for place in (0, 1))
    assert first["y"] == second["y"]
    command = answer.locator(".next code").first.bounding_box()
    assert command["y"] + command["height"] <= 800
    assert re.fullmatch(
        r"\d metrics together: .*, p [\d.< ]+( \(\w+\))?", shown.locator("#metrics p").first.inner_text()
    )
    assert min(drawn_texts(shown.pdf(prefer_css_page_size=True))[:2]) > 40
    heads = shown.locator("section", has=shown.get_by_role("heading", name="Side by side")).locator("th")
    assert heads.all_inner_texts() == ["metric", "first", "second"]


def test_the_script_computes_the_limits_of_draws_as_calcheck_does(tmp_path, visit):
    rng = np.random.default_rng(4)
    draws = {f"sample_{number}": rng.normal(size=400) for number in range(9)}
    page = report(tmp_path, {"y": 1.3 * rng.normal(size=400), **draws, "a": rng.normal(size=400)})
    plain, lively = visit(page, scripts=False), visit(page)
    assert region_table(plain) == region_table(lively)
    assert int(region_table(plain)["PIT bins beyond their limits"][0]) > 0


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(Predictions(y=np.zeros(60), predictive=Poisson(np.full(60, 1e-9))), id="zeros"),
        pytest.param(
            Predictions(y=np.ones(60), predictive=Samples(np.zeros((60, 5)))), id="equal draws", marks=pytest.mark.slow
        ),
        pytest.param(
            Predictions(y=1e45 * np.arange(60.0), predictive=Gaussian(np.zeros(60), np.ones(60))),
            id="far",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_pages_of_rows_that_do_not_vary_are_quiet(tmp_path, visit, rows):
    page = tmp_path / "page.html"
    found = calcheck.evaluate(rows, ["coverage", "pit"], pictures=True, replicates=39, resamples=0)
    page.write_text(found.to_html(), encoding="utf-8")
    plain, lively = visit(page, scripts=False), visit(page)
    assert region_table(plain) == region_table(lively)
