# SPDX-License-Identifier: Apache-2.0
"""Normalisations over a batch, a layer, groups of channels, images, an axis."""
import numpy as np
from oracle import case

random = np.random.RandomState(11)


def values(*dims):
    return random.uniform(-2, 2, dims).astype("float32")


def positive(*dims):
    return random.uniform(0.5, 2, dims).astype("float32")


def batch_norm(name, dims, grads=("X", "Scale", "Bias"), **attrs):
    last = attrs.get("data_layout") == "NHWC"
    c = dims[-1] if last else dims[1]
    fixed = attrs.get("use_global_stats") or (
        attrs.get("is_test") and not attrs.get("trainable_statistics"))
    inputs = {"X": values(*dims), "Scale": values(c), "Bias": values(c), "Mean": values(c),
              "Variance": positive(c)}
    # What it saves is not defined where the statistics are given.
    ignore = ["ReserveSpace"] + (["SavedMean", "SavedVariance"] if fixed else [])
    momentum = attrs.pop("momentum_tensor", None)
    if momentum is not None:
        inputs["MomentumTensor"] = np.array([momentum], "float32")
    case("normalizations", f"batch_norm_{name}", "batch_norm", inputs,
         {"Y": "float32", "MeanOut": "=Mean", "VarianceOut": "=Variance", "SavedMean": "float32",
          "SavedVariance": "float32", "ReserveSpace": "float32"},
         {"momentum": 0.9, "epsilon": 1e-5, "is_test": False, "data_layout": "NCHW",
          "use_global_stats": False, "trainable_statistics": False, **attrs},
         grads=grads, tolerance=2e-5, ignore=ignore)


def make_batch_norm():
    image = (3, 4, 3, 2)
    batch_norm("train", image)
    batch_norm("matrix", (5, 3))
    batch_norm("volume", (2, 3, 2, 2, 2))
    batch_norm("sequence", (3, 4, 5))
    batch_norm("momentum", image, momentum=0.3, epsilon=1e-3)
    batch_norm("momentum_input", image, momentum_tensor=0.6)
    batch_norm("nhwc", (3, 3, 2, 4), data_layout="NHWC")
    batch_norm("nhwc_global", (3, 3, 2, 4), data_layout="NHWC", use_global_stats=True)
    batch_norm("global", image, use_global_stats=True)
    batch_norm("global_matrix", (5, 3), use_global_stats=True)
    batch_norm("test", image, grads=[], is_test=True)
    batch_norm("test_nhwc", (3, 3, 2, 4), grads=[], is_test=True, data_layout="NHWC")
    batch_norm("test_gradient", image, is_test=True)
    batch_norm("test_trainable", image, is_test=True, trainable_statistics=True)
    batch_norm("frozen", image, grads=["X"])
    batch_norm("frozen_global", image, grads=["X"], use_global_stats=True)
    batch_norm("parameters", image, grads=["Scale", "Bias"])
    batch_norm("one_pixel", (1, 3, 1, 1))


def layer_norm(name, x, scale=True, bias=True, **attrs):
    begin = attrs.get("begin_norm_axis", 1)
    n = int(np.prod(x.shape[begin:]))
    inputs = {"X": x, **({"Scale": values(n)} if scale else {}), **({"Bias": values(n)} if bias else {})}
    case("normalizations", f"layer_norm_{name}", "layer_norm", inputs,
         {"Y": "float32", "Mean": "float32", "Variance": "float32"},
         {"epsilon": 1e-5, "begin_norm_axis": 1, **attrs}, grads=list(inputs), tolerance=2e-5)


def make_layer_norm():
    x = values(2, 3, 4)
    layer_norm("plain", x)
    layer_norm("axis2", x, begin_norm_axis=2)
    layer_norm("epsilon", x, epsilon=1e-3)
    layer_norm("no_scale", x, scale=False)
    layer_norm("no_bias", x, bias=False)
    layer_norm("bare", x, scale=False, bias=False, begin_norm_axis=2)
    layer_norm("matrix", values(5, 7))


def make_group_norm():
    for name, dims, groups, layout, parameters in (
            ("two", (2, 4, 3, 2), 2, "NCHW", "both"), ("one", (2, 4, 3, 2), 1, "NCHW", "both"),
            ("each", (2, 4, 3, 2), 4, "NCHW", "both"), ("nhwc", (2, 3, 2, 6), 3, "NHWC", "both"),
            ("no_scale", (2, 4, 3, 2), 2, "NCHW", "Bias"), ("no_bias", (2, 4, 3, 2), 2, "NCHW", "Scale"),
            ("bare", (2, 4, 3, 2), 2, "NCHW", ""), ("rank3", (2, 4, 5), 2, "NCHW", "both")):
        c = dims[-1] if layout == "NHWC" else dims[1]
        inputs = {"X": values(*dims), **{s: values(c) for s in ("Scale", "Bias")
                                         if parameters in ("both", s)}}
        case("normalizations", f"group_norm_{name}", "group_norm", inputs,
             {"Y": "float32", "Mean": "float32", "Variance": "float32"},
             {"epsilon": 1e-5, "groups": groups, "data_layout": layout},
             grads=list(inputs), tolerance=3e-5)


def make_instance_norm():
    for name, dims, parameters in (("image", (2, 3, 4, 3), True), ("bare", (2, 3, 4, 3), False),
                                   ("rank3", (2, 3, 5), True), ("volume", (1, 2, 2, 3, 2), True)):
        inputs = {"X": values(*dims)}
        if parameters:
            inputs.update(Scale=values(dims[1]), Bias=values(dims[1]))
        case("normalizations", f"instance_norm_{name}", "instance_norm", inputs,
             {"Y": "float32", "SavedMean": "float32", "SavedVariance": "float32"},
             {"epsilon": 1e-5}, grads=list(inputs), tolerance=3e-5)


def make_others():
    x = values(2, 3, 4, 2)
    for axis in (0, 1, 2, 3, -1):
        case("normalizations", f"norm_axis{axis}", "norm", {"X": x},
             {"Out": "float32", "Norm": "float32"}, {"axis": axis, "epsilon": 1e-6}, grads=["X"])
    case("normalizations", "norm_zero", "norm", {"X": np.zeros((2, 3), "float32")},
         {"Out": "float32", "Norm": "float32"}, {"axis": 1, "epsilon": 1e-10}, grads=["X"])
    for name, mode, alpha, layout, dims in (
            ("all", "all", values(1), "NCHW", x.shape),
            ("channel", "channel", values(1, 3, 1, 1), "NCHW", x.shape),
            ("channel_vector", "channel", values(3), "NCHW", x.shape),
            ("channel_last", "channel", values(2), "NHWC", x.shape),
            ("element", "element", values(1, 3, 4, 2), "NCHW", x.shape),
            ("matrix", "channel", values(5), "NCHW", (3, 5))):
        case("normalizations", f"prelu_{name}", "prelu", {"X": values(*dims), "Alpha": alpha},
             {"Out": "float32"}, {"mode": mode, "data_format": layout}, grads=["X", "Alpha"])


def make():
    make_batch_norm()
    make_layer_norm()
    make_group_norm()
    make_instance_norm()
    make_others()
