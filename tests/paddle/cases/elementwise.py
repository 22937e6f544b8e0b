# SPDX-License-Identifier: Apache-2.0
"""Ops of two operands of which the smaller one repeats."""
import numpy as np
from oracle import case

random = np.random.RandomState(2)

# X, Y, axis, where the smaller one lies at `axis` of the larger
SHAPES = [((3, 5), (3, 5), -1), ((3, 5), (5,), -1), ((2, 3, 5), (3,), 1),
          ((2, 3, 5), (2, 3), 0), ((3, 1, 5), (4, 1), -1), ((3, 5), (), -1),
          ((), (3, 2), -1), ((5,), (3, 5), -1), ((), (), -1),
          ((2, 1), (1, 3), -1), ((2, 3, 4), (2, 1, 1), -1), ((3, 4), (3, 1), 0)]

GRADIENTS = ["add", "sub", "mul", "div", "max", "min", "pow"]


def floats(dims, dtype="float32", low=0.3):
    return random.uniform(low, 3, dims).astype(dtype)


def integers(dims, dtype, low=-9, high=9):
    values = random.randint(low, high, dims).astype(dtype)
    return np.where(values == 0, 2, values).astype(dtype)


def binary(op, name, x, y, axis=-1, grads=("X", "Y"), out=None, **options):
    case("elementwise", name, op, {"X": x, "Y": y}, {"Out": out or str(x.dtype)},
         {"axis": axis}, grads=list(grads), **options)


def make():
    for short in GRADIENTS:
        op = "elementwise_" + short
        shapes = SHAPES if short in ("add", "div") else SHAPES[:6]
        for i, (x, y, axis) in enumerate(shapes):
            # the gradients of these ops in Paddle know the default axis alone
            ends = axis == -1 or short not in ("max", "min", "pow")
            binary(op, f"{op}_{i}", floats(x), floats(y), axis,
                   grads=("X", "Y") if ends else ())
        binary(op, op + "_float64", floats((2, 3), "float64"),
               floats((3,), "float64"), tolerance=1e-10)
        binary(op, op + "_only_x", floats((2, 3)), floats((3,)), grads=["X"])
        binary(op, op + "_only_y", floats((2, 3)), floats((3,)), grads=["Y"])
        for dtype in ("int32", "int64"):
            low = 0 if short == "pow" else -9
            binary(op, f"{op}_{dtype}", integers((3, 4), dtype, high=6),
                   integers((4,), dtype, low, 6), grads=())
    ties = np.array([1, 2, 2, 3], "float32")
    for op in ("elementwise_max", "elementwise_min"):
        binary(op, op + "_ties", ties, ties[::-1].copy())
        # a NaN in X alone gives Y in Paddle, NaN in Troupe
        binary(op, op + "_nan", np.array([1, np.nan, -0.0], "float32"),
               np.array([np.nan, np.nan, 0.0], "float32"), grads=())
    signs = np.array([-7, -7, 7, 7, -6, 6], "float32")
    below = np.array([3, -3, 3, -3, 3, -3], "float32")
    for op in ("elementwise_mod", "elementwise_floordiv"):
        binary(op, op + "_float32", signs, below, grads=())
        binary(op, op + "_float64", floats((3, 4), "float64", -3),
               floats((4,), "float64"), grads=())
        for dtype in ("int32", "int64"):
            binary(op, f"{op}_{dtype}_signs", signs.astype(dtype),
                   below.astype(dtype), grads=())
            binary(op, f"{op}_{dtype}", integers((2, 3, 4), dtype),
                   integers((3,), dtype), 1, grads=())
    binary("elementwise_div", "elementwise_div_int32_signs", signs.astype("int32"),
           below.astype("int32"), grads=())
    binary("elementwise_pow", "elementwise_pow_negative", floats((3, 4), low=-3),
           np.array([2, 3, 1, 0], "float32"), grads=["X"])
    binary("grad_add", "grad_add", floats((3, 4)), floats((3, 4)), grads=())
    comparisons()
    logic()
    tests()


def comparisons():
    nan = np.array([[1, 2, np.nan], [3, 2, 1]], "float32")
    for op in ("equal", "not_equal", "less_than", "less_equal", "greater_than",
               "greater_equal"):
        binary(op, op, nan, np.array([[1, 3, np.nan], [2, 2, 2]], "float32"),
               grads=(), out="bool")
        # Paddle infers the shape as if there were no axis: square ones work
        binary(op, op + "_axis", integers((3, 3), "int64", -2, 2),
               integers((3,), "int64", -2, 2), 0, grads=(), out="bool")
        binary(op, op + "_int32", integers((3, 4), "int32", -2, 2),
               integers((1,), "int32", -2, 2), grads=(), out="bool")
        binary(op, op + "_float64", floats((3,), "float64"),
               floats((), "float64"), grads=(), out="bool")
        binary(op, op + "_bool", np.array([[True], [False]]),
               np.array([True, False]), grads=(), out="bool")


def logic():
    x = np.array([[True, False], [True, False], [False, True]])
    y = np.array([True, False])
    for op in ("logical_and", "logical_or", "logical_xor"):
        case("elementwise", op, op, {"X": x, "Y": y}, {"Out": "bool"})
        case("elementwise", op + "_float32", op,
             {"X": np.array([0, 1.5, -0.0], "float32"),
              "Y": np.array([2, 0, 0], "float32")}, {"Out": "bool"})
        case("elementwise", op + "_int64", op,
             {"X": np.array([0, 1, 5]), "Y": np.array([2, 0, 3])}, {"Out": "bool"})
    case("elementwise", "logical_not", "logical_not", {"X": x}, {"Out": "bool"})
    case("elementwise", "logical_not_int32", "logical_not",
         {"X": np.array([0, 1, -5], "int32")}, {"Out": "bool"})


def tests():
    x = np.array([[1, np.inf, -np.inf], [np.nan, 0, -3]], "float32")
    for op in ("isfinite_v2", "isinf_v2", "isnan_v2"):
        case("elementwise", op, op, {"X": x}, {"Out": "bool"})
        case("elementwise", op + "_float64", op, {"X": x.astype("float64")},
             {"Out": "bool"})
        for dtype in ("int32", "int64"):
            case("elementwise", f"{op}_{dtype}", op,
                 {"X": np.arange(3).astype(dtype)}, {"Out": "bool"})
