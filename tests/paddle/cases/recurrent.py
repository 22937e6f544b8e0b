# SPDX-License-Identifier: Apache-2.0
"""Recurrent nets: the op rnn, and the older ops over sequences."""
import numpy as np
from oracle import Lod, case

random = np.random.RandomState(11)
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def values(*dims):
    return random.uniform(-0.7, 0.7, dims).astype("float32")


def weights(mode, layers, directions, width, hidden):
    gates = GATES[mode] * hidden
    matrices = []
    for layer in range(layers):
        for _ in range(directions):
            matrices.append(values(gates, width if layer == 0 else directions * hidden))
            matrices.append(values(gates, hidden))
    return matrices + [values(gates) for _ in matrices]


def rnn(name, mode, steps=4, batch=2, width=3, hidden=3, layers=1, directions=1,
        lengths=None, is_test=False, start=values, dropout=0.0):
    state = [start(layers * directions, batch, hidden) for _ in range(2 if mode == "LSTM" else 1)]
    inputs = {"Input": values(steps, batch, width), "PreState": state,
              "WeightList": weights(mode, layers, directions, width, hidden)}
    if lengths:
        inputs["SequenceLength"] = np.int32(lengths)
    outputs = {"Out": "float32", "State": ["float32"] * len(state),
               "Reserve": "float32", "DropoutState": "uint8"}
    case("recurrent", name, "rnn", inputs, outputs,
         {"mode": mode, "hidden_size": hidden, "input_size": width, "num_layers": layers,
          "is_bidirec": directions == 2, "dropout_prob": dropout, "is_test": is_test, "seed": 0},
         grads=() if is_test else ["Input", "PreState", "WeightList"],
         grad_outputs=["Out", "State"],
         opaque=("Reserve0", "Reserve") + (() if dropout == 1.0 else ("DropoutState",)))


def over_sequences(name, op, gates, outputs, attrs, start=False, bias=None, lengths=(2, 4, 1)):
    width, rows, d = sum(lengths), len(lengths), 3
    inputs = {"Input": Lod(values(width, gates * d), list(lengths)), "Weight": values(d, gates * d)}
    if bias:
        inputs["Bias"] = values(1, bias * d)
    states = [s for s in (("H0", "C0") if op == "lstm" else ("H0",)) if start]
    inputs.update({s: values(rows, d) for s in states})
    case("recurrent", name, op, inputs, outputs, attrs,
         grads=["Input", "Weight"] + (["Bias"] if bias else []) + states, grad_outputs=["Hidden"],
         opaque=("BatchGate", "BatchCellPreAct", "BatchResetHiddenPrev", "BatchHidden"))


def older():
    lstm = {"Hidden": "float32", "Cell": "float32", "BatchGate": "float32", "BatchCellPreAct": "float32"}
    plain = {"use_peepholes": False}
    over_sequences("lstm_op", "lstm", 4, lstm, {"use_peepholes": True}, bias=7)
    over_sequences("lstm_op_reverse", "lstm", 4, lstm, {"use_peepholes": True, "is_reverse": True}, True, 7)
    over_sequences("lstm_op_plain", "lstm", 4, lstm, plain, bias=4)
    over_sequences("lstm_op_activations", "lstm", 4, lstm,
                   {**plain, "gate_activation": "relu", "cell_activation": "identity",
                    "candidate_activation": "sigmoid"}, True, 4)
    gru = {"Hidden": "float32", "BatchGate": "float32", "BatchResetHiddenPrev": "float32", "BatchHidden": "float32"}
    over_sequences("gru_op", "gru", 3, gru, {})
    over_sequences("gru_op_reverse", "gru", 3, gru, {"is_reverse": True}, True, 3)
    over_sequences("gru_op_origin", "gru", 3, gru, {"origin_mode": True}, True, 3)
    over_sequences("gru_op_activations", "gru", 3, gru,
                   {"activation": "relu", "gate_activation": "tanh"}, True, 3, (1, 2, 2))
    for name, attrs in (("gru_unit", {}), ("gru_unit_origin", {"origin_mode": True}),
                        ("gru_unit_activations", {"activation": 3, "gate_activation": 0})):
        case("recurrent", name, "gru_unit",
             {"Input": values(4, 9), "HiddenPrev": values(4, 3), "Weight": values(3, 9), "Bias": values(1, 9)},
             {"Gate": "float32", "ResetHiddenPrev": "float32", "Hidden": "float32"}, attrs,
             grads=["Input", "HiddenPrev", "Weight", "Bias"], grad_outputs=["Hidden"])


def make():
    older()
    for mode in GATES:
        short = mode.lower()
        rnn(short, mode)
        rnn(f"{short}_layers", mode, layers=2)
        rnn(f"{short}_both_ways", mode, directions=2, width=2)
        rnn(f"{short}_both_ways_layers", mode, directions=2, layers=2, steps=3, hidden=2)
        rnn(f"{short}_lengths", mode, batch=3, lengths=[4, 2, 3])
        # From another state than zero, Paddle's gradient of the way back is not
        # the derivative: it takes masked outputs for the state before.
        rnn(f"{short}_lengths_both_ways", mode, directions=2, batch=3, steps=5, lengths=[1, 5, 3],
            start=lambda *dims: np.zeros(dims, "float32"))
        rnn(f"{short}_lengths_layers", mode, layers=2, lengths=[3, 1])
        rnn(f"{short}_test", mode, is_test=True, layers=2)
    rnn("lstm_one_step", "LSTM", steps=1, batch=1, hidden=1, width=1)
    # Nothing is left to chance where all is dropped, or nothing since it is a test.
    for mode in ("LSTM", "RNN_RELU"):
        rnn(f"{mode.lower()}_all_dropped", mode, layers=3, directions=2, dropout=1.0)
        rnn(f"{mode.lower()}_dropout_test", mode, layers=2, dropout=0.5, is_test=True)
