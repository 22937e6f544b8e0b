# SPDX-License-Identifier: Apache-2.0
"""Ops over sequences (level of detail), and ops that hand sequences on."""
import numpy as np
from oracle import Lod, case

random = np.random.RandomState(7)


def values(*dims):
    return random.uniform(-2, 2, dims).astype("float32")


def sequences(*lengths, width=3):
    """Rows of `width` in sequences of these lengths."""
    return Lod(values(sum(lengths), width), list(lengths))


def kept(name, op, inputs, outputs, attrs=None, **options):
    case("sequences", name, op, inputs, outputs, attrs, **options)


def pools():
    for pool in ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"):
        outputs = {"Out": "float32", "MaxIndex": "int32"}
        ignore = () if pool == "MAX" else ("MaxIndex",)
        kept("pool_" + pool.lower(), "sequence_pool", {"X": sequences(2, 5, 1)}, outputs,
             {"pooltype": pool}, grads=["X"], ignore=ignore)
        kept(f"pool_{pool.lower()}_empty", "sequence_pool",
             {"X": sequences(2, 0, 3, 0)}, outputs,
             {"pooltype": pool, "pad_value": 0.5}, grads=["X"], ignore=ignore)
    kept("pool_two_levels", "sequence_pool", {"X": Lod(values(7, 2), [2, 1], [3, 0, 4])},
         {"Out": "float32", "MaxIndex": "int32"}, {"pooltype": "SUM"}, grads=["X"], ignore=("MaxIndex",))


def make():
    pools()
    kept("softmax", "sequence_softmax", {"X": Lod(values(6, 1), [1, 3, 2])}, {"Out": "float32"}, grads=["X"])
    kept("softmax_vector", "sequence_softmax", {"X": Lod(values(6), [4, 2])}, {"Out": "float32"}, grads=["X"])
    y = sequences(2, 0, 3)
    kept("expand_rows", "sequence_expand", {"X": values(3, 2), "Y": y}, {"Out": "float32"}, grads=["X"])
    kept("expand_sequences", "sequence_expand", {"X": sequences(2, 3, 1), "Y": y}, {"Out": "float32"},
         {"ref_level": 0}, grads=["X"])
    kept("expand_level", "sequence_expand",
         {"X": values(2, 2), "Y": Lod(values(6, 1), [2, 1], [1, 2, 3])}, {"Out": "float32"},
         {"ref_level": 0}, grads=["X"])
    kept("expand_as", "sequence_expand_as", {"X": values(3, 2), "Y": y}, {"Out": "float32"}, grads=["X"])
    kept("concat", "sequence_concat", {"X": [sequences(2, 1, 3), sequences(1, 0, 4)]}, {"Out": "float32"}, grads=["X"])
    kept("reverse", "sequence_reverse", {"X": sequences(2, 0, 4)}, {"Y": "float32"}, grads=["X"])
    kept("pad", "sequence_pad", {"X": sequences(2, 4, 1), "PadValue": np.float32([0.5])},
         {"Out": "float32", "Length": "int64"}, {"padded_length": -1}, grads=["X"])
    kept("pad_longer", "sequence_pad", {"X": sequences(2, 4, 1), "PadValue": values(3)},
         {"Out": "float32", "Length": "int64"}, {"padded_length": 6}, grads=["X"])
    kept("pad_int64", "sequence_pad",
         {"X": Lod(np.arange(5).reshape(5, 1), [2, 3]), "PadValue": np.int64([-1])},
         {"Out": "int64", "Length": "int64"})
    kept("unpad", "sequence_unpad", {"X": values(3, 4, 2), "Length": np.int64([2, 4, 1])}, {"Out": "float32"}, grads=["X"])
    kept("unpad_vector", "sequence_unpad", {"X": values(2, 4), "Length": np.int64([3, 1])}, {"Out": "float32"}, grads=["X"])
    kept("lod_reset", "lod_reset", {"X": sequences(2, 4)}, {"Out": "float32"},
         {"target_lod": [0, 1, 1, 6]}, grads=["X"])
    kept("lod_reset_values", "lod_reset", {"X": values(6, 2), "Y": np.int32([0, 4, 6])}, {"Out": "float32"}, grads=["X"])
    kept("lod_reset_levels", "lod_reset", {"X": values(5, 2), "Y": y}, {"Out": "float32"}, grads=["X"])
    shared()


def shared():
    """Ops that hand the sequences of X on to Out."""
    x = sequences(2, 3)
    for op in ("relu", "tanh", "sigmoid", "softmax", "square", "scale", "assign"):
        kept("share_" + op, op, {"X": x}, {"Out": "float32"}, grads=["X"] if op in ("relu", "softmax") else ())
    kept("share_add", "elementwise_add", {"X": x, "Y": values(3)}, {"Out": "float32"}, {"axis": 1}, grads=["X", "Y"])
    kept("share_add_y", "elementwise_add", {"X": values(5, 3), "Y": x}, {"Out": "float32"}, {"axis": -1}, grads=["X"])
    kept("share_mul", "mul", {"X": x, "Y": values(3, 5)}, {"Out": "float32"}, grads=["X", "Y"])
    kept("share_not_matmul", "matmul_v2", {"X": x, "Y": values(3, 5)}, {"Out": "float32"})
    kept("share_not_transpose", "transpose2", {"X": x}, {"Out": "float32", "XShape": "float32"}, {"axis": [1, 0]},
         ignore=("XShape",))
    kept("share_not_reduce", "reduce_sum", {"X": x}, {"Out": "float32"}, {"dim": [1]})
    kept("share_reshape", "reshape2", {"X": Lod(values(5, 4), [2, 3])}, {"Out": "float32", "XShape": "float32"},
         {"shape": [5, 2, 2]}, ignore=("XShape",))
    kept("share_concat", "concat", {"X": [x, values(5, 2)]}, {"Out": "float32"}, {"axis": 1}, grads=["X"])
    kept("share_sum", "sum", {"X": [x, values(5, 3)]}, {"Out": "float32"})
    kept("share_layer_norm", "layer_norm", {"X": x, "Scale": values(3), "Bias": values(3)},
         {"Y": "float32", "Mean": "float32", "Variance": "float32"}, {"begin_norm_axis": 1})
    kept("share_lookup", "lookup_table_v2",
         {"W": values(9, 4), "Ids": Lod(np.int64([3, 1, 8, 1, 0]), [2, 3])}, {"Out": "float32"},
         {"padding_idx": 0}, grads=["W"])
    kept("share_cross_entropy", "softmax_with_cross_entropy",
         {"Logits": x, "Label": np.int64([[0], [2], [1], [1], [0]])},
         {"Softmax": "float32", "Loss": "float32"}, grads=["Logits"], grad_outputs=["Loss"])
