# SPDX-License-Identifier: Apache-2.0
"""Losses of predictions and labels."""
import numpy as np
from oracle import case

random = np.random.RandomState(5)


def floats(*dims, dtype="float32", low=-3, high=3):
    return random.uniform(low, high, dims).astype(dtype)


def distributions(*dims, axis=-1, dtype="float32"):
    values = random.uniform(0.1, 1, dims)
    return (values / values.sum(axis, keepdims=True)).astype(dtype)


def classes(*dims, of=5, dtype="int64"):
    return random.randint(0, of, dims).astype(dtype)


def make():
    softmax_losses()
    probability_losses()
    binary_losses()
    regressions()
    smoothed_labels()


def smoothed_labels():
    for name, dims, prior, dtype in (("even", (3, 4), None, "float32"), ("prior", (3, 4), (1, 4), "float32"),
                                     ("float64", (2, 1, 5), None, "float64")):
        inputs = {"X": floats(*dims, dtype=dtype, low=0, high=1)}
        if prior:
            inputs["PriorDist"] = distributions(*prior)
        case("losses", f"label_smooth_{name}", "label_smooth", inputs, {"Out": dtype}, {"epsilon": 0.15},
             grads=["X"])


def softmax_loss(name, logits, label, attrs=None, **options):
    dtype = str(logits.dtype)
    case("losses", "softmax_with_cross_entropy_" + name, "softmax_with_cross_entropy",
         {"Logits": logits, "Label": label}, {"Softmax": dtype, "Loss": dtype},
         attrs, grads=["Logits"], grad_outputs=["Loss"], **options)


def softmax_losses():
    ignoring = np.array([[1], [-100], [4]])
    softmax_loss("hard", floats(3, 5), classes(3, 1))
    softmax_loss("int32", floats(3, 5), classes(3, 1, dtype="int32"))
    softmax_loss("float64", floats(3, 5, dtype="float64"), classes(3, 1), tolerance=1e-9)
    softmax_loss("ignoring", floats(3, 5), ignoring)
    softmax_loss("ignoring_2", floats(4, 5), np.array([[2], [1], [2], [0]]),
                 {"ignore_index": 2})
    softmax_loss("axis_0", floats(5, 3), classes(1, 3), {"axis": 0})
    softmax_loss("axis_1", floats(2, 5, 3), classes(2, 1, 3), {"axis": 1})
    softmax_loss("three", floats(2, 3, 5), classes(2, 3, 1))
    softmax_loss("large", np.array([[100, 0, 0], [0, 30, -50]], "float32"),
                 np.array([[1], [2]]))
    for axis in (-1, 1):
        softmax_loss(f"soft_{axis}", floats(2, 5, 3), distributions(2, 5, 3, axis=axis),
                     {"soft_label": True, "axis": axis})
    softmax_loss("soft_not_normal", floats(2, 5), floats(2, 5, low=0), {"soft_label": True})
    for axis in (-1, 1):
        labels = classes(2, 3, 1) if axis == -1 else classes(2, 1, 5, of=3)
        softmax_loss(f"probabilities_{axis}", distributions(2, 3, 5, axis=axis), labels,
                     {"use_softmax": False, "axis": axis})
    softmax_loss("probabilities_ignoring", distributions(3, 5), ignoring,
                 {"use_softmax": False})
    softmax_loss("probabilities_soft", distributions(3, 5), distributions(3, 5),
                 {"use_softmax": False, "soft_label": True})


def probability_losses():
    def loss(name, x, label, attrs=None, **options):
        case("losses", "cross_entropy_" + name, "cross_entropy",
             {"X": x, "Label": label}, {"Y": str(x.dtype)}, attrs, grads=["X"], **options)

    loss("hard", distributions(3, 5), classes(3, 1))
    loss("three", distributions(2, 3, 5), classes(2, 3, 1))
    loss("ignoring", distributions(3, 5), np.array([[1], [-100], [4]]))
    loss("ignoring_1", distributions(3, 5), np.array([[1], [2], [4]]), {"ignore_index": 1})
    loss("soft", distributions(3, 5), distributions(3, 5), {"soft_label": True})
    loss("float64", distributions(3, 5, dtype="float64"), classes(3, 1), tolerance=1e-9)
    case("losses", "cross_entropy_zero", "cross_entropy",
         {"X": np.array([[0, 1], [1, 0]], "float32"), "Label": np.array([[0], [0]])},
         {"Y": "float32"})
    for name, x, label, attrs in [
            ("hard", distributions(3, 5), classes(3, 1), {}),
            ("three", distributions(2, 3, 5), classes(2, 3, 1), {}),
            ("ignoring", distributions(3, 5), np.array([[1], [2], [4]]), {"ignore_index": 2})]:
        case("losses", "cross_entropy2_" + name, "cross_entropy2",
             {"X": x, "Label": label},
             {"Y": "float32", "XShape": "float32", "MatchX": "float32"}, attrs,
             grads=["X"], grad_outputs=["Y"])


def binary_losses():
    def sigmoid(name, x, label, attrs=None, weight=None, **options):
        extra = {} if weight is None else {"pos_weight": weight}
        case("losses", "sigmoid_cross_entropy_" + name, "sigmoid_cross_entropy_with_logits",
             {"X": x, "Label": label, **extra}, {"Out": str(x.dtype)}, attrs,
             grads=["X"], **options)

    bits = random.randint(0, 2, (3, 5)).astype("float32")
    some = np.where(random.rand(3, 5) < 0.3, -100, bits).astype("float32")
    sigmoid("plain", floats(3, 5) * 5, bits)
    sigmoid("fractions", floats(3, 5), floats(3, 5, low=0, high=1))
    sigmoid("ignoring", floats(3, 5), some)
    sigmoid("ignoring_1", floats(3, 5), bits, {"ignore_index": 1})
    sigmoid("normalized", floats(3, 5), some, {"normalize": True})
    sigmoid("float64", floats(3, 5, dtype="float64"), bits.astype("float64"), tolerance=1e-9)
    sigmoid("weighted", floats(3, 5), bits, weight=floats(3, 5, low=0.5))
    for op, x, y, attrs in [("log_loss", "Predicted", "Labels", [{"epsilon": 1e-4}, {"epsilon": 0.01}]),
                            ("bce_loss", "X", "Label", [{}]),
                            ("hinge_loss", "Logits", "Labels", [{}])]:
        out = "Out" if op == "bce_loss" else "Loss"
        for i, a in enumerate(attrs):
            case("losses", f"{op}_{i}", op, {x: floats(7, 1, low=0.05, high=0.95),
                                             y: bits.ravel()[:7].reshape(7, 1)},
                 {out: "float32"}, a, grads=[x])
    case("losses", "bce_loss_certain", "bce_loss",
         {"X": np.array([0, 1, 0, 1], "float32"), "Label": np.array([0, 0, 1, 1], "float32")},
         {"Out": "float32"}, grads=["X"])
    case("losses", "hinge_loss_margin", "hinge_loss",
         {"Logits": np.array([[-2], [-0.5], [0.5], [2]], "float32"),
          "Labels": np.array([[0], [1], [0], [1]], "float32")},
         {"Loss": "float32"}, grads=["Logits"])


def regressions():
    for i, delta in enumerate((1.0, 0.5)):
        case("losses", f"huber_loss_{i}", "huber_loss", {"X": floats(5, 1), "Y": floats(5, 1)},
             {"Out": "float32", "Residual": "float32"}, {"delta": delta},
             grads=["X", "Y"], grad_outputs=["Out"])
    case("losses", "huber_loss_float64", "huber_loss",
         {"X": floats(5, dtype="float64"), "Y": floats(5, dtype="float64")},
         {"Out": "float64", "Residual": "float64"}, {"delta": 1.0},
         grads=["X"], grad_outputs=["Out"], tolerance=1e-9)
    target = distributions(3, 5)
    target[0, 1] = 0
    for reduction in ("none", "mean", "sum", "batchmean"):
        case("losses", "kldiv_loss_" + reduction, "kldiv_loss",
             {"X": floats(3, 5), "Target": target}, {"Loss": "float32"},
             {"reduction": reduction}, grads=["X"])
