// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/output_program.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/sub_blocks.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

namespace troupe {

graph::program make_output_program(const graph::program& test,
                                   std::span<const std::string> outputs) {
  if (outputs.empty())
    throw error(errc::invalid_argument, "no outputs are wanted");
  // An op that runs a block then lists what the block reads and writes.
  auto made = graph::expose_sub_blocks(test);
  auto& ops = made.main().ops;
  std::set<std::string, std::less<>> needed{outputs.begin(), outputs.end()};
  std::set<std::string, std::less<>> computed;
  std::vector<graph::op_desc> kept;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const auto writes = op->output_names();
    if (std::ranges::none_of(writes,
                             [&](auto& name) { return needed.contains(name); }))
      continue;
    computed.insert(writes.begin(), writes.end());
    for (auto& name : op->input_names())
      needed.insert(name);
    kept.push_back(std::move(*op));
  }
  for (auto& name : outputs)
    if (!computed.contains(name))
      throw error(errc::not_found, "no op of the program computes it",
                  {.variable = name});
  std::ranges::reverse(kept);
  ops = std::move(kept);
  return made;
}

} // namespace troupe
