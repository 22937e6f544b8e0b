// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/unsupported_ops.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::graph;

TEST_SUITE("graph.unsupported_ops") {

namespace {

op_desc op_of(const std::string& type, std::int32_t role = role_forward) {
  op_desc op;
  op.type = type;
  op.attributes.set("op_role", role);
  return op;
}

/// Ops of all roles in two blocks; two types of them are unknown.
program two_blocks() {
  program p;
  p.main().ops = {op_of("feed"), op_of("relu"), op_of("warpctc"),
                  op_of("warpctc_grad", role_backward),
                  op_of("sgd", role_optimize)};
  p.blocks.emplace_back().parent = 0;
  p.blocks[1].ops = {op_of("warpctc"), op_of("fetch"), op_of("relu")};
  return p;
}

} // namespace

TEST_CASE("ops without a kernel are counted in all blocks and roles") {
  const std::vector<device_id> devices(2);
  const auto found = unsupported_ops(two_blocks(), cpu_kernels(), devices);
  CHECK(to_text(found) == "warpctc (2), warpctc_grad (1)");
}

TEST_CASE("the error lists them, and there is none if none is missing") {
  const device_id cpu;
  program p = two_blocks();
  CHECK(test::error_of([&] {
          require_kernels(p, cpu_kernels(), {&cpu, 1});
        })
        == "unsupported_op: no kernels for these ops: warpctc (2), "
           "warpctc_grad (1)");
  for (block& b : p.blocks)
    std::erase_if(b.ops, [](auto& op) { return op.type.starts_with("warp"); });
  CHECK(test::error_of([&] {
          require_kernels(p, cpu_kernels(), {&cpu, 1});
        })
        == "none");
}

TEST_CASE("each kind of device needs a kernel of its own") {
  const device_id both[] = {{device_kind::cpu, 0}, {device_kind::cuda, 0}};
  CHECK(unsupported_ops(two_blocks(), cpu_kernels(), both).contains("relu"));
}
} // TEST_SUITE("graph.unsupported_ops")
