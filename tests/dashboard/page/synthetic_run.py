# A training job that does not exist: a data-parallel convolutional net, whose ops
# run on some workers in made-up times. It answers what the dashboard's server
# would, so that the page can be tested without a job.
import array
import heapq
import json
import math
import random
import struct

WAITING, READY, RUNNING, DONE = range(4)
NO_WORKER = 65535
RUN, HELP, MERGE, PENDING = range(4)

# Of ops, in ms before scaling.
COSTS = {"conv2d": 6, "conv2d_grad": 12, "mul": 3, "mul_grad": 5, "pool2d": 2, "pool2d_grad": 2,
         "all_reduce": 3, "adam": 1.5, "fetch": 0.3}


class Graph:
    """Handles, edges and layers of a net with `blocks` blocks on `devices` devices."""

    def __init__(self, devices, blocks, merges_in_updates=False):
        self.merges_in_updates = merges_in_updates
        self.devices = [f"cpu:{d}" for d in range(devices)]
        self.handles = []
        self.edges = []
        self.layers = {}
        self.ops = 0
        self._build(blocks)
        self._place()
        self.inputs = [[] for _ in self.handles]
        self.outputs = [[] for _ in self.handles]
        for number, (sender, receiver, _) in enumerate(self.edges):
            self.outputs[sender].append(number)
            self.inputs[receiver].append(number)
        for handle, own in zip(self.handles, self.inputs):
            handle["needs"] = len(own)

    def _add(self, name, kind, device, layer, is_op, **more):
        self.handles.append({"name": name, "type": kind, "op": is_op, "collective": False,
                             "device": device, "stream": "", "shape": "", "layer": layer,
                             "needs": 0, "x": 0, "y": 0, **more})
        self.layers.setdefault((device, layer), []).append(len(self.handles) - 1)
        return len(self.handles) - 1

    def _var(self, name, version, device, layer, shape="[-1, 32]"):
        return self._add(f"{name}:v{version}@cpu:{device}", name, device, layer, False,
                         shape=shape)

    def _op(self, kind, device, layer, inputs, outputs, stream="compute", collective=False):
        op = self._add(f"{kind}#{self.ops}@cpu:{device}", kind, device, layer, True,
                       stream=stream, collective=collective,
                       shape="[-1, 32, 8, 8]; [32, 32, 3, 3]")
        self.ops += 1
        self.edges += [[i, op, 0] for i in inputs] + [[op, o, 0] for o in outputs]
        return op

    def _build(self, blocks):
        devices = range(len(self.devices))
        value = [self._var("image", 0, d, "input", "[-1, 1, 8, 8]") for d in devices]
        label = [self._var("label", 0, d, "input", "[-1, 1]") for d in devices]
        kept = []  # of each block: kind, parameter, bias and their values, by device
        for block in range(blocks):
            kind = "mul" if block >= blocks - 2 else "conv2d"
            layer = f"{'fc' if kind == 'mul' else 'conv'}_{block}"
            for d in devices:
                name = f"{layer}.w_0"
                w = self._var(name, 0, d, layer, "[32, 32, 3, 3]")
                b = self._var(f"{layer}.b_0", 0, d, layer, "[32]")
                product = self._var(f"{layer}.tmp_0", 1, d, layer)
                added = self._var(f"{layer}.tmp_1", 1, d, layer)
                result = self._var(f"{layer}.tmp_2", 1, d, layer)
                reader = self._op(kind, d, layer, [value[d], w], [product])
                self._op("elementwise_add", d, layer, [product, b], [added])
                self._op("relu", d, layer, [added], [result])
                kept.append((d, kind, layer, w, b, value[d], result, reader))
                value[d] = result
        gradient = []
        for d in devices:
            loss = self._var("mean_0.tmp_0", 1, d, "loss", "[]")
            softmax = self._var("softmax_0.tmp_1", 1, d, "loss")
            self._op("softmax_with_cross_entropy", d, "loss", [value[d], label[d]],
                               [softmax])
            self._op("mean", d, "loss", [softmax], [loss])
            self._op("fetch", d, "loss", [loss], [], stream="fetch")
            grad = self._var("softmax_0.tmp_1@GRAD", 1, d, "loss")
            self._op("softmax_with_cross_entropy_grad", d, "loss", [softmax, loss], [grad])
            gradient.append(grad)
        for at in range(len(kept) - len(self.devices), -1, -len(self.devices)):
            self._backward(kept[at:at + len(self.devices)], gradient)

    def _backward(self, block, gradient):
        weights, biases = [], []
        readers = []
        for d, kind, layer, w, b, x, result, reader in block:
            back = f"{layer} backward"
            relu = self._var(f"{layer}.tmp_1@GRAD", 1, d, back)
            dw = self._var(f"{layer}.w_0@GRAD", 1, d, back, "[32, 32, 3, 3]")
            db = self._var(f"{layer}.b_0@GRAD", 1, d, back, "[32]")
            dx = self._var(f"{layer}.tmp_0@GRAD", 1, d, back)
            self._op("relu_grad", d, back, [gradient[d], result], [relu])
            self._op("elementwise_add_grad", d, back, [relu], [db])
            readers.append((reader, self._op(f"{kind}_grad", d, back, [relu, x, w], [dw, dx])))
            gradient[d] = dx
            weights.append(dw)
            biases.append(db)
        if self.merges_in_updates:
            self._merge_in_updates(block, weights, biases, readers)
            return
        layer = block[0][2]
        merged = [(self._var(f"{layer}.w_0@GRAD", 2, d, f"{layer} update"),
                   self._var(f"{layer}.b_0@GRAD", 2, d, f"{layer} update"))
                  for d, *_ in block]
        if len(block) > 1:
            self._op("all_reduce", 0, f"{layer} update", weights + biases,
                     [v for pair in merged for v in pair], stream="collective", collective=True)
        else:
            self._op("scale", 0, f"{layer} update", weights + biases, list(merged[0]))
        for (d, kind, layer, w, b, *_), (mw, mb), own in zip(block, merged, readers):
            for parameter, grad, name in ((w, mw, "w_0"), (b, mb, "b_0")):
                after = self._var(f"{layer}.{name}", 1, d, f"{layer} update")
                update = self._op("adam", d, f"{layer} update", [grad], [after])
                self.edges.append([after, parameter, 1])
                # An update waits for those that read the parameter before it.
                self.edges += [[op, update, 0] for op in own]

    def _merge_in_updates(self, block, weights, biases, readers):
        """As with the strategy reduce: device 0 has the parameters."""
        _, _, layer, w, b, *_ = block[0]
        for parameter, gradients, name in ((w, weights, "w_0"), (b, biases, "b_0")):
            after = self._var(f"{layer}.{name}", 1, 0, f"{layer} update")
            update = self._op("adam", 0, f"{layer} update", gradients, [after])
            self.edges.append([after, parameter, 1])
            self.edges += [[op, update, 0] for own in readers for op in own]

    def _place(self):
        """Rows by depth within a layer; layers by depth; devices side by side."""
        depth = [0] * len(self.handles)
        senders = [[] for _ in self.handles]
        receivers = [[] for _ in self.handles]
        missing = [0] * len(self.handles)
        for sender, receiver, distance in self.edges:
            if distance == 0:
                senders[receiver].append(sender)
                receivers[sender].append(receiver)
                missing[receiver] += 1
        waiting = [h for h, n in enumerate(missing) if n == 0]
        while waiting:
            handle = waiting.pop()
            for other in receivers[handle]:
                depth[other] = max(depth[other], depth[handle] + 1)
                missing[other] -= 1
                if missing[other] == 0:
                    waiting.append(other)
        self.boxes = []
        left = 0
        # A long net is laid out in several columns.
        limit = 3000 if len(self.layers) < 100 else 9000
        for d in range(len(self.devices)):
            groups = ([], [], [])
            for (device, name), members in self.layers.items():
                if device == d:
                    kind = 2 if "update" in name else 1 if "backward" in name else 0
                    groups[kind].append((name, members))
            # The backward pass runs upwards beside the forward one.
            for group in (groups[0], groups[1][::-1], groups[2][::-1]):
                left = self._place_column(d, group, left, limit, senders, depth) + 60
            left += 60
        self.width = left
        self.height = max(b["y"] + b["height"] for b in self.boxes) + 24

    def _place_column(self, device, layers, left, limit, senders, depth):
        top, width = 24, 0
        for name, members in layers:
            rows, local = {}, {}
            for m in sorted(members, key=lambda m: depth[m]):
                local[m] = max((local[s] + 1 for s in senders[m] if s in local), default=0)
                rows.setdefault(local[m], []).append(m)
            own = max(sum(self._room(m) for m in row) for row in rows.values()) + 48
            height = 52 * len(rows) + 40
            if top + height > limit:
                left, top, width = left + width + 60, 24, 0
            own = max(own, 320)
            width = max(width, own)
            for number, row in rows.items():
                x = left + (own - sum(self._room(m) for m in row)) / 2
                for m in row:
                    self.handles[m]["x"] = x + self._room(m) / 2
                    self.handles[m]["y"] = top + 50 + 52 * number
                    x += self._room(m)
            self.boxes.append({"name": name, "device": device, "x": left, "y": top,
                               "width": own, "height": height, "handles": members})
            top += height + 40
        return left + width

    def _room(self, handle):
        return 136 if self.handles[handle]["op"] else 44

    def json(self, run):
        return {"run": run, "devices": self.devices, "width": self.width, "height": self.height,
                "handles": self.handles, "edges": self.edges, "layers": self.boxes}


class Step:
    """When each handle of a step is ready, begins and ends, in ms since its begin."""

    def __init__(self, graph, workers, length, seed):
        chance = random.Random(seed)
        count = len(graph.handles)
        self.ready = [0.0] * count
        self.begin = [0.0] * count
        self.end = [0.0] * count
        self.worker = [NO_WORKER] * count
        missing = [sum(graph.edges[e][2] == 0 for e in own) for own in graph.inputs]
        events = []  # (time, kind, handle); kind 0: a handle ends
        idle = list(range(workers))
        queue = []
        now = 0.0

        def arrived(handle):
            self.ready[handle] = now
            if graph.handles[handle]["op"]:
                heapq.heappush(queue, (now, handle))
            else:
                self.begin[handle] = self.end[handle] = now
                heapq.heappush(events, (now, handle))

        for handle, number in enumerate(missing):
            if number == 0:
                arrived(handle)
        while events or queue:
            while queue and idle:
                _, handle = heapq.heappop(queue)
                cost = COSTS.get(graph.handles[handle]["type"], 0.8) * chance.uniform(0.7, 1.4)
                self.worker[handle] = idle.pop(0)
                self.begin[handle] = now + 0.05
                self.end[handle] = now + 0.05 + cost
                heapq.heappush(events, (self.end[handle], handle))
            now, handle = heapq.heappop(events)
            if self.worker[handle] != NO_WORKER:
                idle.append(self.worker[handle])
                idle.sort()
            for edge in graph.outputs[handle]:
                _, receiver, distance = graph.edges[edge]
                if distance == 0:
                    missing[receiver] -= 1
                    if missing[receiver] == 0:
                        arrived(receiver)
        scale = length / now
        for times in (self.ready, self.begin, self.end):
            times[:] = [t * scale for t in times]
        self.length = length
        happens = []
        for handle in range(count):
            if graph.handles[handle]["op"]:
                happens.append((self.ready[handle], READY, handle))
                happens.append((self.begin[handle], RUNNING, handle))
            happens.append((self.end[handle], DONE, handle))
        happens.sort()
        self.happens = happens


class SyntheticRun:
    """The state of the job, which `advance` moves on. Not for several threads."""

    def __init__(self, run="5eed0001", devices=2, blocks=6, workers=2, step_ms=400,
                 may_control=True, merges_in_updates=False):
        self.run = run
        self.graph = Graph(devices, blocks, merges_in_updates)
        self.strategy = "reduce" if merges_in_updates else "all_reduce"
        self.workers = workers
        self.may_control = may_control
        self.state = "running"
        self.failure = ""
        self.warning, self.warning_ms, self.warnings = "", 0, 0
        self.level = "messages"  # or "steps": then nothing is known of handles
        self.has_values = True  # else as a file: no losses, rates and samples per second
        self.op_delay_ms = 0
        self.time_ms = 0.0
        self.sequence = 0
        self.step = 0
        self.steps_ended = 0
        self.messages = 0
        self.nan_steps = []
        self.series = {"steps": [], "loss": [], "ms": [], "samples_per_s": [],
                       "learning_rate": []}
        self.slices = []
        self.single_steps = 0
        self._plans = [Step(self.graph, workers, step_ms * (0.9 + 0.05 * k), k) for k in range(4)]
        count = len(self.graph.handles)
        self.handle_state = bytearray(count)
        self.arrived = array.array("H", bytes(2 * count))
        self.runs = array.array("I", bytes(4 * count))
        self.edge_messages = array.array("I", bytes(4 * len(self.graph.edges)))
        self._new_slices = []
        self._new_steps = []
        self._in_step = 0.0
        self._next = 0
        self._begin_step()

    # -- the job ---------------------------------------------------------------

    def advance(self, ms):
        """The job works for `ms` of the clock on the wall."""
        if self.state != "running":
            return
        rest = ms / (1 + self.op_delay_ms)
        while rest > 0 and self.state == "running":
            plan = self._plan()
            part = min(rest, plan.length - self._in_step)
            self._in_step += part
            self.time_ms += part
            rest -= part
            self._apply(plan)
            if self._in_step >= plan.length:
                self._end_step(plan)

    def control(self, command, op_delay_ms):
        if command == "pause":
            self.state = "paused"
        elif command == "resume":
            self.state = "running"
        elif command == "step":
            self.state = "running"
            self.single_steps = 1
        elif command == "slow":
            self.op_delay_ms = op_delay_ms
        return {"state": self.state,
                "file": "/runs/troupe-7-1.trt" if command == "dump" else None}

    def _plan(self):
        return self._plans[self.step % len(self._plans)]

    def _begin_step(self):
        count = len(self.graph.handles)
        self.handle_state[:] = bytes(count)
        self.arrived = array.array("H", bytes(2 * count))
        self._in_step = 0.0
        self._next = 0
        self._begin_ms = self.time_ms
        self._apply(self._plan())

    def _apply(self, plan):
        happens, graph = plan.happens, self.graph
        while self._next < len(happens) and happens[self._next][0] <= self._in_step + 1e-6:
            _, what, handle = happens[self._next]
            self._next += 1
            self.handle_state[handle] = what
            if what != DONE:
                continue
            self.runs[handle] += 1
            for edge in graph.outputs[handle]:
                self.edge_messages[edge] += 1
                self.messages += 1
                if graph.edges[edge][2] == 0:
                    self.arrived[graph.edges[edge][1]] += 1
            if graph.handles[handle]["op"]:
                self._slice(plan, handle)

    def _slice(self, plan, handle):
        begin, ms = self._begin_ms + plan.begin[handle], plan.end[handle] - plan.begin[handle]
        self._new_slices.append((begin, ms, handle, plan.worker[handle], self.step, RUN))
        if self.graph.handles[handle]["collective"]:
            self._new_slices.append((begin + ms * 0.1, ms * 0.8, handle, NO_WORKER, self.step,
                                     MERGE))

    def _end_step(self, plan):
        loss = 2.3 * math.exp(-self.step / 120) + 0.15 + 0.06 * math.sin(self.step * 1.7)
        if self.step % 37 == 21 and self.has_values:
            loss = math.nan
            self.nan_steps.append(self.step)
        if self.step % 37 == 9:
            loss = math.nan  # no loss was fetched, which is no news
        row = (self.step, plan.length, loss, 64000 / plan.length, 0.001 * 0.99 ** (self.step // 8))
        if not self.has_values:
            row = (self.step, plan.length, math.nan, math.nan, math.nan)
        self._new_steps.append(row)
        for name, value in zip(("steps", "ms", "loss", "samples_per_s", "learning_rate"), row):
            self.series[name].append(value)
        self.steps_ended += 1
        self.step += 1
        if self.single_steps:
            self.single_steps -= 1
            self.state = "paused"
        self._begin_step()

    # -- what the server says ---------------------------------------------------

    def run_json(self):
        return {"run": self.run, "version": "0.1.0", "command": "train digits", "host": "ada",
                "pid": 4711, "process": 0, "processes": 1, "workers": self.workers,
                "strategy": self.strategy, "recorded": False,
                "ranks": [{"rank": 0, "host": "ada", "pid": 4711, "workers": self.workers}],
                "speed_control": True, "may_control": self.may_control}

    def head(self):
        plan = self._plan()
        busy = [-1] * self.workers
        for handle, state in enumerate(self.handle_state):
            if state == RUNNING:
                busy[plan.worker[handle]] = handle
        return {"run": self.run, "sequence": self.sequence, "time_ms": self.time_ms,
                "state": self.state, "failure": self.failure,
                "warning": self.warning, "warning_ms": self.warning_ms,
                "warnings": self.warnings, "step": self.step,
                "steps_ended": self.steps_ended, "level": self.level, "lost": 0,
                "messages": self.messages, "messages_per_s": 2480.5, "steps_per_s": 2.4,
                "workers": [{"busy": 0.9 - 0.1 * w, "op": op} for w, op in enumerate(busy)],
                "watchers": 1, "overhead": 0.004, "op_delay_ms": self.op_delay_ms,
                "memory": [{"device": d, "bytes": 48_200_000 + 1000 * (self.step % 7),
                            "peak_bytes": 61_000_000} for d in self.graph.devices],
                "nan_steps": self.nan_steps[:1] + self.nan_steps[1:][-63:],
                "nan_count": len(self.nan_steps)}

    def frame(self):
        """The bytes of the next frame."""
        self.sequence += 1
        slices, self._new_slices = self._new_slices[-4000:], []
        if self.level == "steps":
            slices = []
        steps, self._new_steps = self._new_steps, []
        self.slices = (self.slices + slices)[-50000:]
        arrays = [("state", "u8", bytes(self.handle_state)),
                  ("arrived", "u16", self.arrived.tobytes()),
                  ("runs", "u32", self.runs.tobytes()),
                  ("edge_messages", "u32", self.edge_messages.tobytes())]
        if self.level == "steps":
            arrays = [(name, kind, b"") for name, kind, _ in arrays]
        arrays += _columns(slices, [("slice_begin", "f64"), ("slice_ms", "f64"),
                                    ("slice_handle", "u32"), ("slice_worker", "u16"),
                                    ("slice_step", "u32"), ("slice_kind", "u8")])
        arrays += _columns(steps, [("step_number", "u32"), ("step_ms", "f64"),
                                   ("step_loss", "f64"), ("step_samples_per_s", "f64"),
                                   ("step_learning_rate", "f64")])
        head = self.head()
        head["arrays"] = [{"name": name, "type": kind, "count": len(data) // SIZES[kind]}
                          for name, kind, data in arrays]
        text = json.dumps(head).encode()
        text += b" " * (-(4 + len(text)) % 8)
        parts = [struct.pack("<I", len(text)), text]
        for _, _, data in arrays:
            parts += [data, bytes(-len(data) % 8)]
        return b"".join(parts)

    def series_json(self):
        clean = {name: [None if isinstance(v, float) and math.isnan(v) else v for v in values]
                 for name, values in self.series.items()}
        return {**clean}

    def timeline_json(self):
        return {"slices": [list(s) for s in self.slices[-20000:]], "dropped": 0}

    def why(self, handle):
        names = ("waiting", "ready", "running", "done")
        if handle is None:
            handle = next((h for h, s in enumerate(self.handle_state) if s != DONE), 0)
        links = []
        while handle is not None and len(links) < 12:
            state = names[self.handle_state[handle]]
            missing = [self.graph.edges[e][0] for e in self.graph.inputs[handle]
                       if self.handle_state[self.graph.edges[e][0]] != DONE
                       and self.graph.edges[e][2] == 0]
            name = self.graph.handles[handle]["name"]
            text = f"{name} is {state}" + (
                f": {len(missing)} of {self.graph.handles[handle]['needs']} messages are missing."
                if state == "waiting" else ".")
            links.append({"handle": handle, "name": name, "step": self.step, "state": state,
                          "text": text})
            handle = missing[0] if state == "waiting" and missing else None
        return {"links": links, "missing": "", "missing_ranks": [],
                "text": links[-1]["text"] if links else ""}

    def collectives(self):
        answer = []
        of = lambda variable: self.graph.handles[variable]
        for number, handle in enumerate(self.graph.handles):
            senders = [self.graph.edges[edge][0] for edge in self.graph.inputs[number]]
            merged = [sender for sender in senders if "@GRAD" in of(sender)["type"]]
            if not handle["collective"] and len({of(one)["device"] for one in merged}) < 2:
                continue
            arrived = [self.graph.devices[of(one)["device"]] for one in merged
                       if self.handle_state[one] == DONE]
            missing = [d for d in self.graph.devices if d not in arrived]
            rank = self.graph.devices.index  # a rank has a device
            answer.append({"handle": number, "name": handle["name"], "step": self.step,
                           "values": list(dict.fromkeys(of(one)["type"] for one in merged)),
                           "devices": self.graph.devices, "arrived": sorted(set(arrived)),
                           "missing": missing,
                           "arrived_ranks": [rank(d) for d in sorted(set(arrived))],
                           "missing_ranks": [rank(d) for d in missing],
                           "waiting_ns": 12_500_000 if arrived and missing else 0,
                           "last_ns": 3_100_000, "mean_ns": 2_900_000})
        return answer

    def memory(self):
        return [{"device": d, "bytes": 48_200_000, "peak_bytes": 61_000_000,
                 "holders": [{"name": "conv_1.tmp_0", "bytes": 16_777_216},
                             {"name": "conv_0.tmp_0", "bytes": 8_388_608},
                             {"name": "fc_4.w_0", "bytes": 131_072}]}
                for d in self.graph.devices]

    def actors(self):
        ops = sum(h["op"] for h in self.graph.handles)
        variables = len(self.graph.handles) - ops
        streams = 3 * len(self.graph.devices)
        return {"actors": ops + variables + streams, "op_actors": ops,
                "variable_actors": variables, "stream_actors": streams,
                "application_actors": 3, "application": APPLICATION,
                "streams": [{"device": d, "stream": "compute", "ready": 2, "running": 1}
                            for d in self.graph.devices],
                "messages": self.messages, "messages_per_step": len(self.graph.edges),
                "steps": self.steps_ended, "errors": [],
                "nodes": [{"rank": 0, "host": "ada", "state": "running"}]}


def _actor(number, name, state, mailbox, **more):
    return {"actor": number, "name": name, "id": 40 + number, "node": "", "state": state,
            "mailbox": mailbox, "longest_mailbox": 9, "received": 12, "handled": 8,
            "skipped": 1, "busy_ms": 1.5, "message": "('feed', i32)", "reason": "", **more}


APPLICATION = [_actor(0, "feeder", "failed", 0, reason="runtime_error: no more data"),
               _actor(1, "reporter", "running", 3),
               _actor(2, "main", "sender", None, longest_mailbox=0, handled=0, busy_ms=0,
                      message="")]

SIZES = {"u8": 1, "u16": 2, "u32": 4, "f64": 8}
CODES = {"u8": "B", "u16": "H", "u32": "I", "f64": "d"}


def _columns(rows, columns):
    return [(name, kind, array.array(CODES[kind], [row[i] for row in rows]).tobytes())
            for i, (name, kind) in enumerate(columns)]
