// SPDX-License-Identifier: Apache-2.0
//
// An application's op whose kernel does not keep to the op's schema.
#include <troupe/actors/executor.hpp>
#include <troupe/actors/plain_executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.output_check") {

namespace {

void run_with_columns(kernel_context& ctx, std::int64_t columns) {
  auto rows = ctx.input("X").dims()[0];
  auto out = ctx.output("Out", {rows, columns}, dtype::float32);
  std::ranges::fill(out.values<float>(), 1.0f);
}
void run_as_declared(kernel_context& ctx) {
  run_with_columns(ctx, 4);
}
void run_wider(kernel_context& ctx) {
  run_with_columns(ctx, 5);
}
void run_flat(kernel_context& ctx) {
  ctx.output("Out", {ctx.input("X").numel()}, dtype::float32);
}
void run_rows_again(kernel_context& ctx) {
  ctx.output("Out", {2 * ctx.input("X").dims()[0], 4}, dtype::float32);
}

void run_in_float64(kernel_context& ctx) {
  auto out = ctx.output("Out", {ctx.input("X").dims()[0], 4}, dtype::float64);
  std::ranges::fill(out.values<double>(), 1.0);
}

/// x -> "stretch", the op of an application, -> sum over everything.
struct stretching_net {
  explicit stretching_net(std::int64_t batch) : net(schemas()) {
    const auto x = net.data("x", {batch, 3});
    const auto out = net.temporary("stretched");
    graph::op_desc op;
    op.type = "stretch";
    op.set_input("X", {x.name()});
    op.set_output("Out", {out.name()});
    net.append(std::move(op), std::source_location::current());
    total = layers::reduce_sum(layers::add(out, out)).name();
  }

  static graph::op_schema_table schemas() {
    auto all = graph::op_schemas();
    all["stretch"] = {.type = "stretch",
                      .inputs = {{"X"}},
                      .outputs = {{"Out"}},
                      .infer = [](graph::shape_inference& s) {
                        s.output("Out", {s.dims("X")[0], 4}, s.type("X"));
                      }};
    return all;
  }

  graph::network net;
  std::string total;
};

std::shared_ptr<const kernel_table> kernels_with(kernel_function stretch) {
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  kernels->add("stretch", device_kind::cpu, stretch);
  return kernels;
}

feed_map batch_of(arena& memory, std::int64_t samples) {
  auto x = tensor::make(memory, {samples, 3}, dtype::float32);
  std::ranges::fill(x.values<float>(), 0.0f);
  return {{"x", x}};
}

/// Runs a step of 6 samples in an executor.
void run_step(kernel_function stretch, std::int64_t batch = -1,
              const char* devices = "cpu:1") {
  const stretching_net stretching{batch};
  arena memory{make_host_memory_source()};
  executor_options options;
  options.devices = parse_devices(devices);
  options.kernels = kernels_with(stretch);
  options.fetches = {stretching.total};
  executor exe{stretching.net.main, options};
  exe.run(batch_of(memory, 6), {{stretching.total}});
}

void check_blame(const error& e, const char* made, const char* declared) {
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().op_type == "stretch");
  CHECK(e.where().variable == "stretched");
  CHECK(says(e, "op stretch wrote output Out 'stretched' with shape "
                  + std::string{made} + ", its shape inference declared "
                  + declared));
}

} // namespace

TEST_CASE("an application's op with its declared output shape runs") {
  CHECK_NOTHROW(run_step(run_as_declared));
  CHECK_NOTHROW(run_step(run_as_declared, 6));
}

TEST_CASE(
  "an error names the op whose output differs from its declared shape") {
  check_blame(caught([] { run_step(run_wider); }), "[6, 5]", "[-1, 4]");
  check_blame(caught([] { run_step(run_flat); }), "[18]", "[-1, 4]");
  check_blame(caught([] { run_step(run_rows_again, 6); }), "[12, 4]", "[6, 4]");
}

TEST_CASE(
  "an error names the op whose output has another dtype than declared") {
  const auto e = caught([] { run_step(run_in_float64); });
  CHECK(e.code() == errc::dtype_mismatch);
  CHECK(e.where().variable == "stretched");
  CHECK(says(e, "with dtype float64, its shape inference declared float32"));
}

TEST_CASE("the plain executor reports the same error") {
  const stretching_net stretching{-1};
  arena memory{make_host_memory_source()};
  plain_executor_options options;
  options.kernels = kernels_with(run_wider);
  plain_executor exe{stretching.net.main, options};
  check_blame(caught([&] { exe.run(batch_of(memory, 6)); }), "[6, 5]",
              "[-1, 4]");
}

TEST_CASE("shards of a fixed batch may be smaller than declared") {
  CHECK_NOTHROW(run_step(run_as_declared, 6, "cpu:2"));
  check_blame(caught([] { run_step(run_wider, -1, "cpu:2"); }), "[3, 5]",
              "[-1, 4]");
}

} // TEST_SUITE("actors.output_check")
