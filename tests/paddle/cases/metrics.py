# SPDX-License-Identifier: Apache-2.0
"""Metrics of a batch, and of all batches so far."""
import numpy as np
from oracle import case

random = np.random.RandomState(8)
THRESHOLDS = 7


def counts(elements, batches=None):
    """Histograms of earlier batches; with a window, their number comes last."""
    values = random.randint(0, 9, elements).astype("int64")
    if batches is not None:
        values[-1] = batches
    return values


def auc(name, predict, label, window, positive, negative, **attrs):
    tag = {"InsTagWeight": attrs.pop("tag")} if "tag" in attrs else {}
    case("metrics", "auc_" + name, "auc",
         {"Predict": predict, "Label": label, "StatPos": positive, "StatNeg": negative, **tag},
         {"AUC": "float64", "StatPosOut": "=StatPos", "StatNegOut": "=StatNeg"},
         {"num_thresholds": THRESHOLDS, "slide_steps": window, "curve": "ROC", **attrs}, tolerance=1e-12)


def make_auc():
    bins = THRESHOLDS + 1
    predict = random.uniform(0, 1, (9, 2)).astype("float32")
    predict[:2, 1] = 0.0, 1.0
    label = random.randint(0, 2, (9, 1)).astype("int64")
    none = np.zeros((1, bins), "int64")
    auc("first", predict, label, 0, none, none)
    auc("later", predict, label, 0, counts((1, bins)), counts((1, bins)))
    auc("one_column", predict[:, 1:], label, 0, counts((1, bins)), counts((1, bins)))
    auc("precision_recall", predict, label, 0, counts((1, bins)), counts((1, bins)), curve="PR")
    auc("one_label", predict, np.ones_like(label), 0, none, none)
    auc("other_labels", predict, label * 3 - 1, 0, none, none)
    for window, batches in ((1, 0), (1, 5), (3, 1), (3, 5)):
        size = (window + 1) * bins + 1
        auc(f"window_{window}_batch_{batches}", predict, label, window, counts(size, batches), counts(size, batches))
    for window in (0, 2):
        size = (window + 1) * bins + (window > 0)
        for tag in (0.0, 1.0):
            # Without a window, Paddle computes nothing for a batch that does not count.
            if window or tag:
                auc(f"tag_{tag:.0f}_window_{window}", predict, label, window, counts(size, 1), counts(size, 1),
                    tag=np.float32([tag]))


def make_accuracy():
    for name, k in (("top_1", 1), ("top_3", 3)):
        indices = random.randint(0, 5, (8, k)).astype("int64")
        case("metrics", "accuracy_" + name, "accuracy",
             {"Out": random.uniform(0, 1, (8, k)).astype("float32"), "Indices": indices,
              "Label": random.randint(0, 5, (8, 1)).astype("int64")},
             {"Accuracy": "float32", "Correct": "int32", "Total": "int32"})


def make():
    make_auc()
    make_accuracy()
