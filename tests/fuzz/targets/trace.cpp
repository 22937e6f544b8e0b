// SPDX-License-Identifier: Apache-2.0
// A .trt file, and what tools make of it. Checksums are put right first: with
// them, damage would not reach the decoders of blocks.

#include "fuzz/fuzz_target.hpp"

#include <troupe/base/fingerprint.hpp>
#include <troupe/dashboard/picture/answers.hpp>
#include <troupe/dashboard/picture/live_picture.hpp>
#include <troupe/dashboard/source/recorded_source.hpp>
#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/parcels.hpp>
#include <troupe/trace/analysis/summary.hpp>
#include <troupe/trace/analysis/timeline.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <nlohmann/json.hpp>

#include <cstring>
#include <string>

namespace troupe::fuzz {

namespace {

constexpr std::size_t file_head_bytes = 16;

/// The head of a block: kind, bytes of the payload, checksum.
struct head_of_block {
  std::uint32_t kind;
  std::uint32_t bytes;
  std::uint64_t checksum;
};

std::string with_checksums(std::string_view bytes) {
  std::string file{bytes};
  for (auto at = file_head_bytes; at + sizeof(head_of_block) <= file.size();) {
    head_of_block head;
    std::memcpy(&head, file.data() + at, sizeof head);
    const auto payload = at + sizeof head;
    if (head.bytes > file.size() - payload)
      break;
    fingerprint sum;
    sum.add(std::string_view{file}.substr(payload, head.bytes));
    head.checksum = sum.value();
    std::memcpy(file.data() + at, &head, sizeof head);
    at = payload + head.bytes;
  }
  return file;
}

} // namespace

// A byte can be an event of 32 bytes, and a slice and a run of twice that.
memory_allowance allowance() {
  return {.per_byte = 1024, .at_once = std::size_t{64} << 20};
}

void run_target(std::string_view bytes) {
  const memory_file file(with_checksums(bytes));
  const auto read = trace::read_trace(file.path());
  for (const auto& s : read.stacks) {
    if (!read.find(s.op))
      fail("a call stack of an op that is not there");
    for (const auto& f : s.frames)
      if (to_string(f).size() < f.symbol.size())
        fail("a frame without its name");
  }
  const trace::timeline all{{&read, 1}};
  for (const auto& r : all.runs())
    if (r.end < r.begin || r.done < r.end)
      fail("a run ends before it begins");
  // As of two ranks, of which one has the events of the other.
  const trace::op_graph graph{read.graph};
  const trace::process_trace two[] = {read, read};
  const trace::parcel_list parcels{two, graph};
  for (const auto& p : parcels.all())
    if (p.sender >= read.graph.handles.size()
        || p.receiver >= read.graph.handles.size())
      fail("a parcel of an op that does not exist");
  dashboard::live_picture picture{
    read.graph, {read.run.process}, read.run.workers};
  picture.add(read.events);
  dashboard::recorded_source source{{read}};
  picture.add(source.take_actors());
  const auto told = dashboard::actors_answer(picture, {read.run}, {});
  if (told.at("application_actors") != read.actors.size())
    fail("an actor is missing");
  if (trace::summarize({&read, 1}, all, graph).actors.size()
      > read.actors.size())
    fail("more actors than there are");
  dashboard::frame_maker frames;
  if (frames.next(picture, {}).size() < read.graph.handles.size())
    fail("a frame without states");
  dashboard::why_in(picture);
}

} // namespace troupe::fuzz
