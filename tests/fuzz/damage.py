"""Damages to the bytes of a file, to its text, and to its table before it is written again."""

import gzip
import io
import random
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from calcheck.metrics import METRICS
from tests.fuzz.seeds import DAMAGED, ROW_METRICS, SEEDS, TEXT, WHOLE, WRITERS, Seed, cells
from tests.helpers.malicious_files import as_big_endian, write_encrypted

FLOATS = (
    3.0,
    1e-6,
    1e10,
    1e154,
    1e308,
    -1e308,
    1e300,
    1e19,
    5e-324,
    1e-200,
    0.0,
    -1.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    None,
)
WHOLES = (2**63 - 1, -(2**63), 10**15, 0, -1, None)
CELLS = (
    *("", "nan", "inf", "-inf", "1e308", "1e400", "-0", "0", "-1", "abc", '"', "'", ";", "1,2", "1\t2", "é", "\x00"),
    *("9" * 30, "true", "null", "None", "NA", "2020-01-01", "[1, 2", "{}", "[" * 5000, "x" * 300_000, "9" * 5000),
    *("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000),
    *("[bold]", "\x1b[31m", "\u202e", "١", "1_000", "0x1p3", "1.5e", "=1+1", "...", "\r"),
)
NAMES = (
    *("", " ", "é", "x" * 60_000, "\x00", "a\nb", "[bold]x[/]", "--std", "0", "0.5", "1.5", "nan", "y", "std", "var"),
    *("mean", "id", "samples", "sample_0", "sample_" + "9" * 30, "emb_1", "embedding", "q_0.5", "M-lo-90", "M-hi-x"),
    *("output_type", "value", "quantile", "observed", "model", "error", "a,b", "../a", "a|b"),
)
TYPES = (  # and the value of each row
    (pa.string(), lambda row: f"v{row}"),
    (pa.large_string(), str),
    (pa.string_view(), str),
    (pa.int64(), int),
    (pa.uint8(), lambda row: row % 256),
    (pa.float16(), lambda row: row / 8),
    (pa.bool_(), lambda row: row % 2 == 0),
    (pa.uint64(), lambda row: 2**64 - 1 - row),
    (pa.date32(), int),
    (pa.date32(), lambda row: 2**31 - 1 - row),
    (pa.timestamp("s"), lambda row: 2**62 - row),
    (pa.timestamp("ns", "UTC"), int),
    (pa.time64("ns"), int),
    (pa.duration("ns"), int),
    (pa.month_day_nano_interval(), lambda row: (1, 2, row)),
    (pa.null(), {}.get),
    (pa.decimal128(38, 10), Decimal),
    (pa.decimal256(70, 0), lambda row: Decimal(10) ** 60 + row),
    (pa.binary(), lambda row: bytes([row % 256, 255])),
    (pa.list_(pa.float64()), lambda row: [row] * 3),
    (pa.list_(pa.string()), lambda row: [str(row)]),
    (pa.list_(pa.list_(pa.float32())), lambda row: [[row, 1], [2, 3]]),
    (pa.list_(pa.float64(), 2), lambda row: [row, 1]),
    (pa.large_list(pa.int8()), lambda row: [1] * (row % 3)),
    (pa.dictionary(pa.int8(), pa.string()), lambda row: str(row % 5)),
    (pa.dictionary(pa.int32(), pa.float64()), lambda row: row / 4),
    (pa.struct([("a", pa.float64())]), lambda row: {"a": row}),
    (pa.map_(pa.string(), pa.float64()), lambda row: [("a", row)]),
)


# tables


def drop_column(table, rnd):
    return table.remove_column(rnd.randrange(table.num_columns))


def replace_column(table, column, values, kind):
    name = table.column_names[column]
    return table.set_column(column, pa.field(name, kind), pa.array(values, kind))


def change_type(table, rnd):
    kind, make = rnd.choice(TYPES)
    return replace_column(table, rnd.randrange(table.num_columns), [make(row) for row in range(len(table))], kind)


def rename_column(table, rnd):
    names = table.column_names
    names[rnd.randrange(len(names))] = rnd.choice(names + list(NAMES))
    return table.rename_columns(names)


def reorder_columns(table, rnd):
    return table.select(rnd.sample(range(table.num_columns), table.num_columns))


def change_cells(table, rnd):
    """Set some or all values of a column to the same value, without changing its type."""
    column = rnd.randrange(table.num_columns)
    kind, values = table.schema.field(column).type, cells(table.column(column))
    rows = range(len(values)) if rnd.random() < 0.3 else [rnd.randrange(len(values)) for _ in range(3 if values else 0)]
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        value = rnd.choice(FLOATS)
    elif pa.types.is_int64(kind):
        value = rnd.choice(WHOLES)
    elif pa.types.is_string(kind):
        value = rnd.choice((*CELLS, None))
    elif pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        return change_lists(table, column, rows, rnd)
    else:
        return table
    for row in rows:
        values[row] = value
    return replace_column(table, column, values, kind)


def scale_numbers(table, rnd):
    """Make the numbers of one or all columns extreme: large, small, or equal."""
    power, every = rnd.choice((-300, -100, -20, -8, 5, 18, 100, 300)), rnd.random() < 0.3
    for column in range(table.num_columns) if every else [rnd.randrange(table.num_columns)]:
        kind = table.schema.field(column).type
        if not pa.types.is_float64(getattr(kind, "value_type", kind)):
            continue
        values = [scaled(value, 10.0**power) for value in cells(table.column(column))]
        table = replace_column(table, column, values[:1] * len(values) if rnd.random() < 0.2 else values, kind)
    return table


def scaled(value, factor):
    """Return a number, or a list of numbers, rounded and multiplied."""
    if isinstance(value, list):
        return [scaled(number, factor) for number in value]
    return None if value is None else float(f"{value:.3e}") * factor


def change_lists(table, column, rows, rnd):
    """Change some lists of a column: their lengths, or values in them."""
    kind, values = table.schema.field(column).type, cells(table.column(column))
    number = rnd.choice(FLOATS) if pa.types.is_floating(kind.value_type) else None
    for row in rows:
        vector = values[row] or []
        values[row] = rnd.choice((vector[1:], [], None, vector * 2, *[[number, *vector[1:]]] * 4))
    return replace_column(table, column, values, pa.list_(kind.value_type))


def repeat_rows(table, rnd):
    return pa.concat_tables([table] * rnd.randint(2, 3))


def keep_few_rows(table, rnd):
    return table.slice(0, rnd.choice((0, 1, 2)))


# text


def edit_cell(text, rnd):
    cells = list(re.finditer(r'[^,\t\n\[\]{}:"]+', text)) or [re.match("", text)]
    cell = rnd.choice(cells)
    return text[: cell.start()] + rnd.choice(CELLS) + text[cell.end() :]


def repeat_header(text, rnd):
    lines = text.split("\n")
    lines.insert(rnd.randrange(len(lines)), lines[0])
    return "\n".join(lines)


def change_line_breaks(text, rnd):
    return re.sub("\n", lambda _: rnd.choice(("\n", "\r\n", "\r", "\n\n", "\u2028", "")), text)


def insert_quote(text, rnd):
    place = rnd.randrange(len(text) + 1)
    return text[:place] + rnd.choice(('"', '""', "'", '"""', "\\")) + text[place:]


def change_delimiter(text, rnd):
    return text.replace(rnd.choice((",", ".", "\t")), rnd.choice((";", ",", " ", "|", "\x00")))


# bytes


def flip_bytes(content, rnd):
    for _ in range(rnd.randint(1, 8) if content else 0):
        content[rnd.randrange(len(content))] = rnd.randrange(256)
    return content


def truncate(content, rnd):
    return content[: rnd.randrange(len(content) + 1)]


def insert_bytes(content, rnd):
    place = rnd.randrange(len(content) + 1)
    content[place:place] = rnd.randbytes(rnd.randint(1, 20))
    return content


def repeat_bytes(content, rnd):
    start, stop = sorted(rnd.randrange(len(content) + 1) for _ in range(2))
    content[stop:stop] = content[start:stop]
    return content


def zero_bytes(content, rnd):
    start = rnd.randrange(len(content) + 1)
    content[start : start + 64] = bytes(len(content[start : start + 64]))
    return content


def write_size(content, rnd):
    """Write a large or negative number where the format may store a size."""
    place = rnd.randrange(len(content) + 1)
    size = rnd.choice((4, 8))
    content[place : place + size] = rnd.choice((-1, 2**31 - 1, 2**20, -(2**31))).to_bytes(size, "little", signed=True)
    return content


def change_encoding(content, rnd):
    """Encode text differently; compress other content."""
    try:
        text = content.decode() + "é"
    except UnicodeDecodeError:
        return bytearray(gzip.compress(content, mtime=0))
    coding = rnd.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp500", "utf-7"))
    return bytearray(text.encode(coding, errors="replace"))


def reverse_byte_order(content, _):
    """Mark the numbers of an Arrow stream as big-endian."""
    return bytearray(as_big_endian(content)) if content[:4] == b"\xff\xff\xff\xff" else content


TABLE_DAMAGES = (
    drop_column,
    change_type,
    change_type,
    rename_column,
    reorder_columns,
    change_cells,
    change_cells,
    change_cells,
    scale_numbers,
    scale_numbers,
    repeat_rows,
    keep_few_rows,
)
TEXT_DAMAGES = (edit_cell, edit_cell, edit_cell, repeat_header, change_line_breaks, insert_quote, change_delimiter)
BYTE_DAMAGES = (
    flip_bytes,
    truncate,
    insert_bytes,
    repeat_bytes,
    zero_bytes,
    write_size,
    change_encoding,
    reverse_byte_order,
)
ENDINGS = (*WRITERS, "pkl", "txt", "h5", "gz", "CSV")


@dataclass(frozen=True)
class Case:
    """A damaged file, the other files, and the commands that read them."""

    seed: Seed
    damages: tuple[str, ...]
    files: dict[str, bytes]
    commands: tuple[tuple[str, ...], ...]

    def save(self, folder):
        """Write the files; the commands are to be run in their folder."""
        for name, content in self.files.items():
            Path(folder, name).write_bytes(content)


def case(seed, index, seeds=SEEDS):
    """Return a damaged version of an intact file; the seed and the index determine it."""
    rnd = random.Random(f"{seed} {index}")
    whole = seeds[index % len(seeds)]
    made, damages = whole.table, []

    def damage_some(thing, kinds, times):
        for damage in rnd.choices(kinds, k=times):
            if isinstance(thing, pa.Table) and not thing.num_columns:
                break
            thing = damage(thing, rnd)
            damages.append(damage.__name__)
        return thing

    where = rnd.choice(("table", "table", "text" if whole.ending in TEXT else "bytes", "bytes", "both"))
    if where in ("table", "both"):
        made = damage_some(made, TABLE_DAMAGES, rnd.choice((1, 1, 2, 3)))
    content = bytearray(_content_of(whole, made, damages, rnd))
    if where in ("text", "both") and whole.ending in TEXT:
        content = bytearray(damage_some(content.decode(), TEXT_DAMAGES, rnd.choice((1, 1, 2, 3))).encode())
    if where in ("bytes", "both"):
        content = damage_some(content, BYTE_DAMAGES, rnd.choice((1, 1, 2)))
    ending = rnd.choice(ENDINGS) if rnd.random() < 0.03 else whole.ending
    return _case_of(whole, tuple(damages), rnd.choice(whole.metrics), f"damaged.{ending}", bytes(content))


def _content_of(whole, made, damages, rnd):
    """Return the bytes of a table; Parquet is sometimes encrypted."""
    if whole.ending != "parquet" or not made.num_columns or rnd.random() > 0.05:
        return WRITERS[whole.ending](made)
    damages.append("encrypted")
    sink = io.BytesIO()
    try:
        write_encrypted(sink, made, plaintext_footer=rnd.random() < 0.7)
    except (pa.ArrowException, OSError):  # unsupported types, or nested columns with other names
        return WRITERS[whole.ending](made)
    return sink.getvalue()


def intact(seed):
    """Return the case without damage."""
    return _case_of(seed, (), seed.metrics[0], f"intact.{seed.ending}", WRITERS[seed.ending](seed.table))


def _case_of(seed, damages, metric, name, content):
    files = {name: content} | ({} if seed.beside is None else {WHOLE: WRITERS["parquet"](seed.beside)})
    inspected = seed.arguments if DAMAGED in seed.arguments else DAMAGED
    more = ("--worst 2" if metric in METRICS else "") + (" --no-bootstrap" if metric in ROW_METRICS else "")
    commands = f"inspect {inspected}", f"{metric} {seed.arguments} {seed.metric_options} --format json {more}"
    return Case(seed, damages, files, tuple(tuple(line.replace(DAMAGED, name).split()) for line in commands))
