# SPDX-License-Identifier: Apache-2.0
"""Where the two engines differ on what both load, and why that is left so."""

from typing import Final

from tests.unit.cel.cases import FAILS

KNOWN: Final = [
    ("[1, 2][dyn(1.0)]", 2, FAILS, "cel-python takes no double as a position"),
    ("0.0 / 0.0 == 0.0 / 0.0", False, True, "cel-python divides by 0.0 to infinity, not NaN"),
    ("duration('1.5s').getMilliseconds()", 500, 1500, "cel-python counts the whole duration"),
    ("dyn('a').size() == 1 && type('a') == string", True, False, "cel-python's types differ"),
    ("int('0x' + '10')", FAILS, 16, "cel-python reads hexadecimal numbers"),
]
ONLY_CEL_PYTHON_LOADS: Final = [
    ("object.spec.contaners.size() == 0", "it does not know what a Pod is"),
    ("1 + 'a' == 2", "it checks no types before it evaluates"),
    ("timestamp('2020-13-01T00:00:00Z') > timestamp('2020-01-01T00:00:00Z')", "no literals either"),
]
