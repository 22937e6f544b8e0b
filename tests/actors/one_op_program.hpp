// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/network.hpp>

#include <string>
#include <utility>

namespace troupe::test {

/// x `[batch, 1]` -> an op of this type, X to Out -> y. The network does not
/// know the type: it is one of the test.
inline graph::program one_op_program(std::string type) {
  graph::network net;
  net.data("x", {-1, 1});
  net.temporary("y");
  graph::op_desc op;
  op.type = std::move(type);
  op.set_input("X", {"x"});
  op.set_output("Out", {"y"});
  auto& main = net.main.main();
  main.ops.push_back(std::move(op));
  main.find_var("y")->dims = {-1, 1};
  return std::move(net.main);
}

} // namespace troupe::test
