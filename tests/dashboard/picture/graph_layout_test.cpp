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

graph_layout lay_out(const trace::graph_info& g) {
  return dashboard::lay_out(g, group_handles(g));
}

bool overlap(const box& a, const box& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height
         && b.y < a.y + a.height;
}

/// Two layers with forward, backward and update on each of two devices.
trace::graph_info two_layers() {
  trace::graph_info g;
  g.devices = {"cpu:0", "cpu:1"};
  for (std::uint32_t device = 0; device < 2; ++device) {
    const auto first = static_cast<handle_id>(g.handles.size());
    for (const auto* layer : {"fc_0", "fc_1"})
      for (auto& h :
           {op("mul", device), var(layer + std::string{".out"}, device),
            op("mul_grad", device), var(layer + std::string{".w@GRAD"}, device),
            op("sgd", device), var(layer + std::string{".w"}, device)})
        g.handles.push_back(h);
    for (handle_id i : {0, 1, 2, 3, 4, 6, 7, 8, 9, 10})
      g.edges.push_back({first + i, first + i + 1, 0});
    g.edges.push_back({first + 1, first + 6, 0}); // fc_1 needs fc_0
    g.edges.push_back({first + 9, first + 2, 0}); // and back
  }
  return g;
}

} // namespace

TEST_CASE("within a group a handle stands to the right of all it waits for") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  for (int i = 0; i < 6; ++i)
    g.handles.push_back(var("layer." + std::to_string(i)));
  g.edges = {{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {2, 4, 0},
             {4, 3, 0}, {3, 5, 0}, {5, 0, 1}}; // of the next step
  const auto layout = lay_out(g);
  for (const auto& e : g.edges)
    if (e.distance == 0)
      CHECK(layout.places[e.from].x < layout.places[e.to].x);
}

TEST_CASE("no two handles lie on each other, and each is within its group") {
  const auto g = two_layers();
  const auto groups = group_handles(g);
  const auto layout = dashboard::lay_out(g, groups);
  for (std::size_t i = 0; i < g.handles.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      CHECK((std::abs(layout.places[i].x - layout.places[k].x) >= 120
             || std::abs(layout.places[i].y - layout.places[k].y) >= 30));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& b = layout.groups[i];
    for (auto id : groups[i].handles) {
      CHECK(layout.places[id].x - 60 >= b.x);
      CHECK(layout.places[id].x + 60 <= b.x + b.width);
      CHECK(layout.places[id].y - 15 >= b.y + 24); // under the name
      CHECK(layout.places[id].y + 15 <= b.y + b.height);
    }
    CHECK(b.x >= 0);
    CHECK(b.y >= 0);
    CHECK(b.x + b.width <= layout.width);
    CHECK(b.y + b.height <= layout.height);
    for (std::size_t k = 0; k < i; ++k)
      CHECK_FALSE(overlap(b, layout.groups[k]));
  }
}

TEST_CASE("layers stand in their order, with backward and update under them") {
  const auto g = two_layers();
  const auto groups = group_handles(g);
  const auto layout = dashboard::lay_out(g, groups);
  const auto at = [&](const std::string& name, std::uint32_t device) {
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].name() == name && groups[i].device == device)
        return layout.groups[i];
    FAIL("no group " << name);
    return box{};
  };
  CHECK(at("fc_0", 0).x < at("fc_1", 0).x);
  CHECK(at("fc_0 backward", 0).x == at("fc_0", 0).x);
  CHECK(at("fc_0", 0).y < at("fc_0 backward", 0).y);
  CHECK(at("fc_0 backward", 0).y < at("fc_0 update", 0).y);
  CHECK(at("fc_1 update", 0).y < at("fc_0", 1).y); // the next device
  CHECK(at("fc_1", 1).x == at("fc_1", 0).x);
}

TEST_CASE("a parameter stands beside the op that reads it first") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {var("l.a"), var("l.b"), var("l.c"), var("l.w")};
  g.edges = {{0, 1, 0}, {1, 2, 0}, {3, 2, 0}};
  const auto layout = lay_out(g);
  CHECK(layout.places[3].x == layout.places[1].x);
}

TEST_CASE("ways that need not cross do not") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {var("l.a"), var("l.b"), var("l.b2"), var("l.a2")};
  g.edges = {{0, 3, 0}, {1, 2, 0}};
  const auto p = lay_out(g).places;
  CHECK((p[0].y < p[1].y) == (p[3].y < p[2].y));
}

TEST_CASE("a graph of very many ways is laid out, and so is an empty one") {
  trace::graph_info g;
  CHECK(lay_out(g).places.empty());
  g.devices = {"cpu:0"};
  for (int i = 0; i < 60; ++i) // the number of ways doubles with each op
    g.handles.push_back(
      var("layer" + std::to_string(i / 20) + "." + std::to_string(i)));
  for (std::uint32_t i = 0; i + 2 < 60; ++i) {
    g.edges.push_back({i, i + 1, 0});
    g.edges.push_back({i, i + 2, 0});
  }
  CHECK(lay_out(g).places.size() == 60);
}

TEST_CASE("a layer that is used twice has a place all the same") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {var("a.1"), var("b.1"), var("a.2"), var("b.2")};
  g.edges = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}};
  const auto groups = group_handles(g);
  REQUIRE(groups.size() == 2);
  const auto layout = dashboard::lay_out(g, groups);
  CHECK(layout.groups[0].x < layout.groups[1].x);
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
  CHECK(groups[0].name() == "fc_0");
  CHECK(groups[0].handles == std::vector<handle_id>{0, 1});
  CHECK(groups[1].name() == "fc_0 backward");
  CHECK(groups[1].handles == std::vector<handle_id>{2, 3});
  CHECK(groups[2].name() == "fc_0 update");
  CHECK(groups[2].handles == std::vector<handle_id>{4, 5});
  CHECK(groups[3].device == 1);
}

TEST_CASE("a name scope of the program is a layer, for its variables too") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  const auto scoped = [](std::string type, std::string scope) {
    auto h = op(std::move(type));
    h.scope = std::move(scope);
    return h;
  };
  enum : handle_id { x, w, mul, out, relu, y, grad, dw, sgd, w1 };
  g.handles = {var("x"),
               var("fc_0.w_0"),
               scoped("mul", "/encoder/fc/"),
               var("fc_0.tmp_0"),
               op("relu"),
               var("relu_0.tmp_0"),
               scoped("mul_grad", "/encoder/fc/"),
               var("fc_0.w_0@GRAD"),
               scoped("sgd", "/optimizer/"),
               var("fc_0.w_0")};
  g.edges = {{x, mul, 0},    {w, mul, 0},  {mul, out, 0},
             {out, relu, 0}, {relu, y, 0}, {y, grad, 0},
             {grad, dw, 0},  {dw, sgd, 0}, {sgd, w1, 0}};
  const auto groups = group_handles(g);
  const auto named = [&](const std::string& name) {
    for (const auto& group : groups)
      if (group.name() == name)
        return group.handles;
    return std::vector<handle_id>{};
  };
  CHECK(named("encoder/fc") == std::vector<handle_id>{x, w, mul, out});
  CHECK(named("relu_0") == std::vector<handle_id>{relu, y}); // has no scope
  CHECK(named("encoder/fc backward") == std::vector<handle_id>{grad, dw});
  CHECK(named("encoder/fc update") == std::vector<handle_id>{sgd, w1});
}

} // TEST_SUITE("dashboard.graph_layout")
