// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/graph_layout.hpp>

#include <troupe/dashboard/picture/handle_groups.hpp>

#include <trace/export/hand_made_trace.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.graph_layout") {

namespace {

trace::handle_info op(std::string name, std::uint32_t device = 0) {
  return {name, name, true, false, device, "compute", ""};
}

trace::handle_info var(std::string name, std::uint32_t device = 0) {
  return {name, name, false, false, device, "", ""};
}

} // namespace

TEST_CASE("a handle stands to the right of all that it waits for") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  for (int i = 0; i < 6; ++i)
    g.handles.push_back(op("op" + std::to_string(i)));
  g.edges = {{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {2, 4, 0},
             {4, 3, 0}, {3, 5, 0}, {5, 0, 1}}; // of the next step
  const auto layout = lay_out(g);
  for (const auto& e : g.edges)
    if (e.distance == 0)
      CHECK(layout.places[e.from].x < layout.places[e.to].x);
  for (const auto& p : layout.places) {
    CHECK(p.x > 0);
    CHECK(p.x < layout.width);
    CHECK(p.y >= 0);
    CHECK(p.y <= layout.height);
  }
}

TEST_CASE("no two handles lie on each other, and devices are apart") {
  trace::graph_info g;
  g.devices = {"cpu:0", "cpu:1"};
  for (std::uint32_t i = 0; i < 12; ++i)
    g.handles.push_back(op("op" + std::to_string(i), i % 2));
  for (std::uint32_t i = 2; i < 12; ++i)
    g.edges.push_back({i % 2, i, 0});
  const auto layout = lay_out(g);
  double lowest_of_first = -1, highest_of_second = 1e9;
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t k = 0; k < i; ++k)
      CHECK(std::abs(layout.places[i].x - layout.places[k].x)
              + std::abs(layout.places[i].y - layout.places[k].y)
            > 1);
    auto& edge = i % 2 == 0 ? lowest_of_first : highest_of_second;
    edge = i % 2 == 0 ? std::max(edge, layout.places[i].y)
                      : std::min(edge, layout.places[i].y);
  }
  CHECK(lowest_of_first < highest_of_second);
}

TEST_CASE("a parameter stands beside the op that reads it first") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {op("a"), op("b"), op("c"), var("w")};
  g.edges = {{0, 1, 0}, {1, 2, 0}, {3, 2, 0}};
  const auto layout = lay_out(g);
  CHECK(layout.places[3].x == layout.places[1].x);
}

TEST_CASE("ways that need not cross do not") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {op("a"), op("b"), op("b'"), op("a'")};
  g.edges = {{0, 3, 0}, {1, 2, 0}};
  const auto p = lay_out(g).places;
  CHECK((p[0].y < p[1].y) == (p[3].y < p[2].y));
}

TEST_CASE("a graph of a million ways is laid out, and so is an empty one") {
  trace::graph_info g;
  CHECK(lay_out(g).places.empty());
  g.devices = {"cpu:0"};
  for (int i = 0; i < 60; ++i) // the number of ways doubles with each op
    g.handles.push_back(op("op"));
  for (std::uint32_t i = 0; i + 2 < 60; ++i) {
    g.edges.push_back({i, i + 1, 0});
    g.edges.push_back({i, i + 2, 0});
  }
  CHECK(lay_out(g).places.size() == 60);
}

TEST_CASE("handles are grouped by layer, device and phase") {
  trace::graph_info g;
  g.devices = {"cpu:0", "cpu:1"};
  g.handles = {
    op("mul"), var("fc_0.tmp_0"), op("mul_grad"),      var("fc_0.w_0@GRAD"),
    op("sgd"), var("fc_0.w_0"),   var("fc_0.tmp_0", 1)};
  g.edges = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 4, 0}, {4, 5, 0}};
  const auto groups = group_handles(g);
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].name == "fc_0");
  CHECK(groups[0].handles == std::vector<handle_id>{0, 1});
  CHECK(groups[1].name == "fc_0 backward");
  CHECK(groups[1].handles == std::vector<handle_id>{2, 3});
  CHECK(groups[2].name == "fc_0 update");
  CHECK(groups[2].handles == std::vector<handle_id>{4, 5});
  CHECK(groups[3].device == 1);
}

} // TEST_SUITE("dashboard.graph_layout")
