# SPDX-License-Identifier: Apache-2.0
"""Triangles of matrices."""
import numpy as np
from oracle import case

random = np.random.RandomState(4)


def make():
    x = random.uniform(-1, 1, (2, 4, 3)).astype("float32")
    for lower in (True, False):
        for diagonal in (-2, 0, 1, 5):
            case("triangles", f"tril_triu_{'low' if lower else 'up'}_{diagonal}",
                 "tril_triu", {"X": x}, {"Out": "float32"},
                 {"lower": lower, "diagonal": diagonal}, grads=["X"])
    infinite = np.full((3, 3), -np.inf, "float32")
    case("triangles", "tril_triu_infinite", "tril_triu", {"X": infinite},
         {"Out": "float32"}, {"lower": False, "diagonal": 1})
    for dtype in ("float64", "int32", "int64", "bool"):
        case("triangles", f"tril_triu_{dtype}", "tril_triu",
             {"X": np.arange(1, 13).reshape(3, 4).astype(dtype)}, {"Out": dtype},
             {"lower": True, "diagonal": 0})
