// SPDX-License-Identifier: Apache-2.0
// docs/ops.md lists the ops that there are: each row's first cell names ops in
// backticks, its second their gradient, "yes" for op_grad or ops by name.

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/unsupported_ops.hpp>
#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe {

TEST_SUITE("paddle.ops_page") {

namespace {

std::vector<std::string> quoted_names(const std::string& cell) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = cell.find('`', at)) != std::string::npos;) {
    const auto end = cell.find('`', at + 1);
    REQUIRE(end != std::string::npos);
    names.push_back(cell.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names;
}

/// The page's ops with their gradients.
class ops_page {
public:
  ops_page() {
    std::ifstream page{TROUPE_OPS_PAGE};
    REQUIRE(page.is_open());
    for (std::string line; std::getline(page, line);)
      if (line.starts_with("| `"))
        read_row(line);
  }

  bool has(const std::string& op) const { return has_gradient_.contains(op); }
  bool has_gradient(const std::string& op) const {
    return has_gradient_.at(op);
  }
  /// Gradient ops among them.
  const std::set<std::string>& ops() const { return ops_; }

private:
  void read_row(const std::string& line) {
    const auto second = line.find('|', 1);
    const auto third = line.find('|', second + 1);
    const auto gradient = line.substr(second + 1, third - second - 1);
    const auto others = quoted_names(gradient);
    const bool own = gradient.find("yes") != std::string::npos;
    for (const auto& op : quoted_names(line.substr(0, second))) {
      CAPTURE(op);
      CHECK(has_gradient_.emplace(op, own || !others.empty()).second);
      ops_.insert(op);
      if (own)
        ops_.insert(op + "_grad");
    }
    ops_.insert(others.begin(), others.end());
  }

  std::map<std::string, bool> has_gradient_;
  std::set<std::string> ops_;
};

constexpr device_id cpu{device_kind::cpu, 0};

bool is_supported(const std::string& type, const kernel_table& kernels) {
  graph::program p;
  p.main().ops.emplace_back().type = type;
  return graph::unsupported_ops(p, kernels, {&cpu, 1}).empty();
}

} // namespace

TEST_CASE("every op with a kernel is on the page") {
  const ops_page page;
  for (const auto& type : cpu_kernels().op_types(device_kind::cpu)) {
    CAPTURE(type);
    CHECK(page.ops().contains(type));
  }
}

TEST_CASE("every op on the page runs, and every gradient") {
  const ops_page page;
  const auto kernels = cpu_kernels();
  for (const auto& type : page.ops()) {
    CAPTURE(type);
    CHECK(is_supported(type, kernels));
  }
}

TEST_CASE("ops that networks may use have the gradient that the page says") {
  const ops_page page;
  for (const auto& [type, schema] : graph::op_schemas()) {
    CAPTURE(type);
    REQUIRE(page.has(type));
    CHECK(page.has_gradient(type) == !schema.gradient.groups.empty());
  }
}
} // TEST_SUITE("paddle.ops_page")

} // namespace troupe
