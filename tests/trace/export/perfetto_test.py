#!/usr/bin/env python3
# Decodes what `troupe trace export --format perfetto` makes of a run with the
# classes of the package `perfetto` (pip install perfetto), which others have
# written: names resolve, slices of a track do not overlap, each message has both
# ends. Their numbers are those of the other formats.
#
# usage: perfetto_test.py TROUPE [FILE.trt ...]
import collections
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
except ImportError:
    print("skipped: needs the package perfetto (pip install perfetto)")
    sys.exit(SKIPPED)


def read(path):
    trace = pb.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    return trace


class Checker:
    def __init__(self):
        self.tracks = {}
        self.names = {}
        self.categories = {}
        self.annotations = {}
        self.cleared = set()
        self.slices = collections.defaultdict(list)  # events by track
        self.begins = collections.defaultdict(list)  # of a message: times
        self.ends = collections.defaultdict(list)
        self.counters = 0
        self.problems = []

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def take_interned(self, sequence, data):
        for entries, into in (
            (data.event_names, self.names),
            (data.event_categories, self.categories),
            (data.debug_annotation_names, self.annotations),
        ):
            for entry in entries:
                self.expect(entry.name, "an interned name is empty")
                into[sequence, entry.iid] = entry.name

    def take(self, packet):
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            self.cleared.add(sequence)
        if packet.HasField("interned_data"):
            self.take_interned(sequence, packet.interned_data)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            self.expect(track.uuid not in self.tracks, "a track comes twice")
            self.tracks[track.uuid] = track
        if packet.HasField("track_event"):
            self.take_event(sequence, packet)

    def take_event(self, sequence, packet):
        event = packet.track_event
        self.expect(sequence in self.cleared, "an event before its state")
        self.expect(event.track_uuid in self.tracks, "an event without track")
        kinds = pb.TrackEvent
        if event.type == kinds.TYPE_COUNTER:
            self.counters += 1
            track = self.tracks[event.track_uuid]
            self.expect(track.HasField("counter"), "a value of no counter")
        if event.type in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_INSTANT):
            key = sequence, event.name_iid
            self.expect(key in self.names, "an event without name")
            for category in event.category_iids:
                self.expect((sequence, category) in self.categories, "category")
            for annotation in event.debug_annotations:
                key = sequence, annotation.name_iid
                self.expect(key in self.annotations, "annotation")
        if event.type in (kinds.TYPE_SLICE_BEGIN, kinds.TYPE_SLICE_END):
            begins = event.type == kinds.TYPE_SLICE_BEGIN
            self.slices[event.track_uuid].append((packet.timestamp, begins))
        for message in event.flow_ids:
            self.begins[message].append(packet.timestamp)
        for message in event.terminating_flow_ids:
            self.ends[message].append(packet.timestamp)

    def finish(self):
        for events in self.slices.values():
            # As Perfetto does: by time, and in the file's order at one time.
            depth = 0
            for _, begins in sorted(events, key=lambda event: event[0]):
                depth += 1 if begins else -1
                self.expect(0 <= depth <= 2, "slices overlap")
            self.expect(depth == 0, "a slice does not end")
        self.expect(self.begins.keys() == self.ends.keys(), "half a message")
        for message, begins in self.begins.items():
            ends = self.ends[message]
            self.expect(len(begins) == len(ends) == 1, "a message forks")
            self.expect(begins < ends, "a message arrives before it was sent")
        for track in self.tracks.values():
            known = not track.parent_uuid or track.parent_uuid in self.tracks
            self.expect(known, "a track without parent")


def export(troupe, traces, form, out):
    command = [troupe, "trace", "export", *traces, "--format", form, "--out", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return out


def check(troupe, traces, folder):
    checker = Checker()
    path = export(troupe, traces, "perfetto", os.path.join(folder, "t.pftrace"))
    for packet in read(path).packet:
        checker.take(packet)
    checker.finish()
    path = export(troupe, traces, "chrome", os.path.join(folder, "t.json"))
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    counts = collections.Counter(event["ph"] for event in events)
    slices = sum(len(events) for events in checker.slices.values()) // 2
    messages = len(checker.begins)
    print(f"{slices} slices, {messages} messages, {checker.counters} samples")
    checker.expect(slices > 0 and messages > 0, "nothing was exported")
    checker.expect(slices == counts["X"], f"{counts['X']} slices in chrome")
    checker.expect(messages == counts["s"], f"{counts['s']} messages in chrome")
    checker.expect(checker.counters == counts["C"], "samples in chrome")
    for problem in sorted(set(checker.problems)):
        print(f"{problem} (x {checker.problems.count(problem)})")
    return not checker.problems


def train(troupe, folder, network, devices):
    trace = os.path.join(folder, f"{network}.trt")
    command = [troupe, "train", network, "--synthetic", "--steps", "5"]
    command += ["--devices", devices, "--trace", trace]
    subprocess.run(command, check=True, capture_output=True)
    return [trace]


def main():
    troupe, *traces = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if traces:
            return 0 if check(troupe, traces, folder) else 1
        # Launches of simulated devices complete later.
        runs = [train(troupe, folder, "mlp", "cpu:2"),
                train(troupe, folder, "lenet", "sim:2")]
        return 0 if all([check(troupe, run, folder) for run in runs]) else 1


if __name__ == "__main__":
    sys.exit(main())
