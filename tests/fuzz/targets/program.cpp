// SPDX-License-Identifier: Apache-2.0
// A program file: parsed, written back, and made a graph of.

#include "fuzz/fuzz_target.hpp"

#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/program_text.hpp>
#include <troupe/graph/ssa/hazard_checker.hpp>
#include <troupe/graph/ssa_builder.hpp>
#include <troupe/graph/unsupported_ops.hpp>

namespace troupe::fuzz {

namespace {

void build(const graph::program& p, graph::merge_strategy strategy) {
  graph::build_options options;
  options.devices = {{device_kind::cpu, 0}, {device_kind::cpu, 1}};
  options.strategy = strategy;
  accept_errors([&] { check_hazards(build_ssa_graph(p, options), 2); });
}

} // namespace

// An op without anything in it takes two bytes of a file. Protobuf reserves
// what the length of a string claims, up to 50 MB, before it looks whether the
// file is that long, and gives it back then.
memory_allowance allowance() {
  return {.per_byte = 2048, .at_once = 52'000'000};
}

void run_target(std::string_view bytes) {
  const auto p = graph::parse_program(bytes, "input");
  const auto written = graph::serialize_program(p);
  if (graph::serialize_program(graph::parse_program(written, "copy"))
      != written)
    fail("a program that is written back twice differs");
  build(p, graph::merge_strategy::all_reduce);
  build(p, graph::merge_strategy::reduce);
  accept_errors([&] { graph::feed_names(p); });
  accept_errors([&] { graph::to_text(graph::clone_for_test(p)); });
  graph::unsupported_ops(p, {}, {});
}

} // namespace troupe::fuzz
