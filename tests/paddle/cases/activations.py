# SPDX-License-Identifier: Apache-2.0
"""Activations: one input, one output of the same shape."""
import numpy as np
from oracle import case

random = np.random.RandomState(1)


def values(*dims):
    return random.uniform(-3, 3, dims).astype("float32")


def make():
    for op in ("relu", "sigmoid", "tanh", "square"):
        case("activations", op, op, {"X": values(3, 7)}, {"Out": "float32"},
             grads=["X"])
    case("activations", "gelu", "gelu", {"X": values(3, 7)}, {"Out": "float32"},
         {"approximate": False}, grads=["X"])
