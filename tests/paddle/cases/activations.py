# SPDX-License-Identifier: Apache-2.0
"""Ops of one input and one output of the same shape."""
import numpy as np
from oracle import case

random = np.random.RandomState(1)


def values(*dims, low=-3, high=3, dtype="float32"):
    return random.uniform(low, high, dims).astype(dtype)


def unary(op, x, attrs=None, name=None, grads=("X",), **options):
    case("activations", name or op, op, {"X": x, **options.pop("extra", {})},
         {"Out": str(x.dtype)}, attrs, grads=list(grads), **options)


# op -> settings of its attributes; the first are the op's defaults
ATTRIBUTES = {
    "brelu": [{}, {"t_min": -1.0, "t_max": 1.5}],
    "celu": [{}, {"alpha": 0.5}],
    "elu": [{}, {"alpha": 0.5}],
    "gelu": [{"approximate": False}, {"approximate": True}],
    "hard_shrink": [{}, {"threshold": 1.25}],
    "hard_sigmoid": [{}, {"slope": 0.4, "offset": 0.25}],
    "hard_swish": [{}],
    "leaky_relu": [{}, {"alpha": 0.3}, {"alpha": 1.5}],
    "mish": [{}, {"threshold": 1.0}],
    "relu6": [{}],
    "selu": [{}, {"scale": 1.5, "alpha": 0.75}],
    "softplus": [{}, {"beta": 2.0, "threshold": 3.0}],
    "softshrink": [{}, {"lambda": 1.25}],
    "stanh": [{}, {"scale_a": 0.5, "scale_b": 2.0}],
    "swish": [{}],
    "thresholded_relu": [{}, {"threshold": -0.5}],
}

PLAIN = ["abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "logsigmoid",
         "relu", "round", "sigmoid", "sign", "silu", "sin", "softsign",
         "square", "tan", "tanh", "tanh_shrink"]

POSITIVE = ["log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt"]

# what comparisons and rounding do at their corners
CORNERS = np.array([-np.inf, -7.5, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0,
                    1.5, 2.5, 3.0, 6.0, 7.0, 24.0, 30.0, 90.0, np.inf, np.nan],
                   "float32")


def make():
    for op in PLAIN:
        unary(op, values(3, 7))
    for op in POSITIVE:
        unary(op, values(3, 7, low=0.2, high=4))
    for op, settings in ATTRIBUTES.items():
        for i, attrs in enumerate(settings):
            unary(op, values(3, 7) * 2, attrs, op + (f"_{i}" if i else ""))
    for op in ("relu", "elu", "gelu", "log", "exp", "sqrt", "softplus", "pow", "abs"):
        unary(op, values(5, low=0.5, dtype="float64"), name=op + "_float64",
              tolerance=1e-9)
    for op in ("abs", "brelu", "ceil", "celu", "elu", "floor", "hard_shrink",
               "hard_sigmoid", "leaky_relu", "relu", "relu6", "round",
               "selu", "sigmoid", "sign", "softshrink", "softsign", "tanh",
               "thresholded_relu"):
        unary(op, CORNERS[1:-3], name=op + "_corners")
    for op in ("relu", "sigmoid", "exp", "log", "square", "sqrt"):
        # Paddle's relu makes 0 of NaN, Troupe's keeps it
        unary(op, CORNERS[:-1] if op == "relu" else CORNERS, name=op + "_infinite",
              grads=())
    unary("relu", values(0, 4), name="relu_empty", grads=())
    unary("tanh", np.array(0.5, "float32"), name="tanh_scalar")
    for factor in (2.0, 0.5, -1.5, 1.0, 0.0):
        unary("pow", values(3, 5, low=0.2), {"factor": factor},
              f"pow_{factor}")
    unary("pow", values(3, 5), {"factor": 3.0}, "pow_negative_base")
    unary("pow", np.arange(-3, 4), {"factor": 2.0}, "pow_int64", grads=())
    unary("pow", np.arange(-3, 4).astype("int32"), {"factor": 3.0}, "pow_int32",
          grads=())
    unary("pow", values(3, 5, low=0.2), {"factor": 3.0}, "pow_tensor",
          extra={"FactorTensor": np.array([2.5], "float32")})
    for dtype in ("int32", "int64"):
        for op in ("abs", "square"):
            unary(op, np.arange(-3, 4).astype(dtype), name=f"{op}_{dtype}",
                  grads=())
    for op in ("softmax", "log_softmax"):
        for axis in (-1, 0, 1):
            unary(op, values(3, 5, 4), {"axis": axis}, f"{op}_axis_{axis}")
        unary(op, values(9) * 20, {}, op + "_vector")
        unary(op, np.array(0.5, "float32"), {}, op + "_scalar")
        unary(op, values(3, 4, dtype="float64"), {"axis": 1},
              op + "_float64", tolerance=1e-9)
