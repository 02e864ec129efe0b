"""Numbers as text."""

import math
import sys

SMALLEST, LARGEST = map(math.log, (sys.float_info.min, sys.float_info.max))


def exponential(logarithm: float) -> str:
    """Return the number with a natural logarithm, with three significant digits, also if it is too large for a float.

    The largest float, and numbers above it, stand for the logarithm of infinity.

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


format_p = "{:.2g}".format  # A p-value with two significant digits, as tables show it


def p_text(p: float) -> str:
    """Return a p-value for a sentence; 199 replicates, the default, do not resolve smaller ones than 0.01.

    >>> p_text(0.0421), p_text(0.005)
    ('p 0.042', 'p < 0.01')
    """
    return "p < 0.01" if p < 0.01 else f"p {format_p(p)}"  # noqa: PLR2004 - see above


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, without trailing zeros.

    >>> percent(0.9), percent(0.8925, 1), percent(0.995)
    ('90 %', '89.2 %', '99.5 %')
    """
    shown = round(100 * share, digits) if digits else 100 * share
    return f"{shown:.4g} %"
