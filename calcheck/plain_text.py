"""Plain text: names and messages from files, which control neither a terminal nor a page, and numbers beyond floats."""

from __future__ import annotations

import math
import sys

SMALLEST, LARGEST = map(math.log, (sys.float_info.min, sys.float_info.max))


def exponential(logarithm: float) -> str:
    """Return the number with a natural logarithm, with three significant digits, also if it is too large for a float.

    The largest float, and numbers above it, stand for the logarithm of infinity.

    Examples
    --------
    >>> exponential(0.0), exponential(1000.0), exponential(-1000.0), exponential(sys.float_info.max)
    ('1', '1.97e+434', '5.08e-435', '∞')
    """
    if logarithm >= sys.float_info.max:
        return "∞"
    if SMALLEST <= logarithm <= LARGEST or not math.isfinite(logarithm):
        return f"{math.exp(logarithm):.3g}"
    power, rest = divmod(logarithm / math.log(10), 1)
    mantissa, _, carried = f"{10**rest:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(power) + int(carried):+d}"


def strip_control(text: str) -> str:
    r"""Return text with control characters escaped, so that names from a file cannot control the terminal.

    Examples
    --------
    >>> print(strip_control("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
