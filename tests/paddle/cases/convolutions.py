# SPDX-License-Identifier: Apache-2.0
"""Convolutions and poolings of images."""
import numpy as np
from oracle import case

random = np.random.RandomState(10)


def values(*dims):
    return random.uniform(-1, 1, dims).astype("float32")


def convolve(op, name, x, w, grads=("Input", "Filter"), **attrs):
    case("convolutions", f"{op}_{name}", op, {"Input": x, "Filter": w}, {"Output": "float32"},
         {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1,
          "padding_algorithm": "EXPLICIT", "data_format": "NCHW", **attrs},
         grads=grads, tolerance=1e-5)


def make_conv():
    x, w = values(2, 3, 6, 5), values(4, 3, 3, 2)
    for name, attrs in (
            ("plain", {}), ("strides", {"strides": [2, 3]}), ("paddings", {"paddings": [2, 1]}),
            ("four_paddings", {"paddings": [0, 2, 1, 0]}), ("dilations", {"dilations": [2, 3]}),
            ("all", {"strides": [2, 1], "paddings": [1, 0, 2, 1], "dilations": [1, 2]}),
            ("same", {"padding_algorithm": "SAME", "strides": [2, 1]}),
            ("same_dilated", {"padding_algorithm": "SAME", "dilations": [2, 2]}),
            ("valid", {"padding_algorithm": "VALID", "paddings": [1, 1]})):
        convolve("conv2d", name, x, w, **attrs)
    convolve("conv2d", "input_gradient", x, w, grads=["Input"])
    convolve("conv2d", "filter_gradient", x, w, grads=["Filter"])
    convolve("conv2d", "pointwise", x, values(2, 3, 1, 1))
    convolve("conv2d", "groups", values(1, 4, 5, 4), values(6, 2, 3, 3), groups=2, paddings=[1, 1])
    convolve("conv2d", "depthwise", values(2, 3, 5, 4), values(6, 1, 3, 3), groups=3)
    convolve("depthwise_conv2d", "plain", values(2, 3, 5, 4), values(3, 1, 3, 3), groups=3,
             paddings=[1, 1])
    convolve("depthwise_conv2d", "multiplied", values(1, 3, 5, 4), values(6, 1, 3, 2), groups=3,
             strides=[2, 1])
    last = values(2, 6, 5, 3)
    convolve("conv2d", "nhwc", last, w, data_format="NHWC", paddings=[1, 0, 2, 1])
    convolve("conv2d", "nhwc_same", last, w, data_format="NHWC", padding_algorithm="SAME",
             strides=[2, 2])
    convolve("conv2d", "nhwc_groups", values(1, 4, 4, 4), values(4, 2, 2, 2), data_format="NHWC",
             groups=2)


def make_transpose():
    x, w = values(2, 3, 4, 3), values(3, 2, 3, 2)
    op = "conv2d_transpose"
    for name, attrs in (
            ("plain", {}), ("strides", {"strides": [2, 3]}), ("paddings", {"paddings": [1, 1]}),
            ("four_paddings", {"paddings": [0, 2, 1, 0]}), ("dilations", {"dilations": [2, 1]}),
            ("output_padding", {"strides": [2, 3], "output_padding": [1, 2]}),
            ("output_size", {"strides": [2, 2], "output_size": [10, 6]}),
            ("same", {"padding_algorithm": "SAME", "strides": [2, 1]}),
            ("valid", {"padding_algorithm": "VALID", "paddings": [1, 1]})):
        convolve(op, name, x, w, **{"output_padding": [], "output_size": [], **attrs})
    convolve(op, "groups", values(1, 4, 3, 3), values(4, 2, 3, 3), groups=2, strides=[2, 2])
    convolve(op, "nhwc", values(2, 4, 3, 3), w, data_format="NHWC", strides=[2, 1])
    convolve(op, "filter_gradient", x, w, grads=["Filter"])
    convolve("depthwise_conv2d_transpose", "plain", values(1, 3, 4, 3), values(3, 1, 3, 3),
             groups=3, strides=[2, 2], paddings=[1, 1])


def pool(name, x, grads=("X",), **attrs):
    case("convolutions", f"pool2d_{name}", "pool2d", {"X": x}, {"Out": "float32"},
         {"pooling_type": "max", "ksize": [2, 3], "strides": [1, 1], "paddings": [0, 0],
          "global_pooling": False, "adaptive": False, "exclusive": True, "ceil_mode": False,
          "padding_algorithm": "EXPLICIT", "data_format": "NCHW", **attrs}, grads=grads)


def make_pool():
    x = values(2, 3, 7, 6)
    for kind in ("max", "avg"):
        for name, attrs in (
                ("plain", {}), ("strides", {"strides": [2, 3]}), ("paddings", {"paddings": [1, 1]}),
                ("four_paddings", {"paddings": [0, 1, 1, 0]}),
                ("ceil", {"strides": [2, 2], "ceil_mode": True, "ksize": [3, 3]}),
                ("ceil_padded", {"strides": [3, 3], "ceil_mode": True, "paddings": [1, 1]}),
                ("same", {"padding_algorithm": "SAME", "strides": [2, 2]}),
                ("valid", {"padding_algorithm": "VALID", "paddings": [1, 1]}),
                ("global", {"global_pooling": True}), ("adaptive", {"adaptive": True, "ksize": [3, 4]}),
                ("adaptive_even", {"adaptive": True, "ksize": [7, 2]}),
                ("nhwc", {"data_format": "NHWC", "strides": [2, 1], "paddings": [1, 1]}),
                ("nhwc_global", {"data_format": "NHWC", "global_pooling": True}),
                ("nhwc_adaptive", {"data_format": "NHWC", "adaptive": True, "ksize": [2, 3]})):
            # A maximum of adaptive windows Paddle computes with the other op:
            # on CPUs pool2d slides windows of `ksize` then.
            if kind == "avg" or "adaptive" not in name:
                pool(f"{kind}_{name}", x, pooling_type=kind, **attrs)
    for name, attrs in (
            ("paddings", {"paddings": [1, 1]}), ("four_paddings", {"paddings": [0, 1, 2, 0]}),
            ("ceil", {"strides": [2, 2], "ceil_mode": True, "ksize": [3, 3]}),
            ("ceil_padded", {"strides": [3, 3], "ceil_mode": True, "paddings": [1, 1]}),
            ("same", {"padding_algorithm": "SAME", "strides": [2, 2]})):
        pool(f"avg_inclusive_{name}", x, pooling_type="avg", exclusive=False, **attrs)
    for name, attrs in (
            ("plain", {}), ("strides", {"strides": [2, 3]}), ("paddings", {"paddings": [1, 1]}),
            ("global", {"global_pooling": True}), ("adaptive", {"adaptive": True, "ksize": [3, 4]})):
        case("convolutions", f"max_pool2d_with_index_{name}", "max_pool2d_with_index", {"X": x},
             {"Out": "float32", "Mask": "int32"},
             {"ksize": [2, 3], "strides": [1, 1], "paddings": [0, 0], "global_pooling": False,
              "adaptive": False, **attrs}, grads=["X"])


def make():
    make_conv()
    make_transpose()
    make_pool()
