// SPDX-License-Identifier: Apache-2.0
#include "small_program.hpp"

#include <troupe/graph/graph_export.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::graph;
using namespace troupe::graph::testing;

TEST_SUITE("graph.graph_export") {

namespace {

ssa_graph scale_and_update() {
  small_program p;
  p.persistable("w").op("scale", {"x", "w"}, {"y"}).op("set", {"x"}, {"w"});
  return build(p);
}

} // namespace

TEST_CASE("JSON lists handles and edges with the documented keys") {
  CHECK(to_json(scale_and_update())
        == R"({"handles":[)"
           R"({"id":0,"kind":"op","type":"scale","name":"scale#0@cpu:0",)"
           R"("version":null,"device":"cpu:0","stream":"compute"},)"
           R"({"id":1,"kind":"op","type":"set","name":"set#1@cpu:0",)"
           R"("version":null,"device":"cpu:0","stream":"compute"},)"
           R"({"id":2,"kind":"var","type":"feed","name":"x",)"
           R"("version":0,"device":"cpu:0","stream":null},)"
           R"({"id":3,"kind":"var","type":"persistable","name":"w",)"
           R"("version":0,"device":"cpu:0","stream":null},)"
           R"({"id":4,"kind":"var","type":"temporary","name":"y",)"
           R"("version":1,"device":"cpu:0","stream":null},)"
           R"({"id":5,"kind":"var","type":"persistable","name":"w",)"
           R"("version":1,"device":"cpu:0","stream":null}],)"
           R"("edges":[)"
           R"({"from":0,"to":1,"kind":"write_after_read","distance":0},)"
           R"({"from":0,"to":4,"kind":"data","distance":0},)"
           R"({"from":1,"to":5,"kind":"data","distance":0},)"
           R"({"from":2,"to":0,"kind":"data","distance":0},)"
           R"({"from":2,"to":1,"kind":"data","distance":0},)"
           R"({"from":3,"to":0,"kind":"data","distance":0},)"
           R"({"from":5,"to":3,"kind":"data","distance":1}]})");
}

TEST_CASE("dot draws clusters, ops, variables and kinds of edges") {
  CHECK(to_dot(scale_and_update())
        == "digraph troupe {\n"
           "  subgraph cluster_0 {\n"
           "    label=\"cpu:0\";\n"
           "    h0 [shape=box, label=\"scale#0@cpu:0\"];\n"
           "    h1 [shape=box, label=\"set#1@cpu:0\"];\n"
           "    h2 [shape=ellipse, label=\"x:v0@cpu:0\"];\n"
           "    h3 [shape=ellipse, label=\"w:v0@cpu:0\"];\n"
           "    h4 [shape=ellipse, label=\"y:v1@cpu:0\"];\n"
           "    h5 [shape=ellipse, label=\"w:v1@cpu:0\"];\n"
           "  }\n"
           "  h0 -> h1 [label=\"write_after_read\", style=dashed];\n"
           "  h0 -> h4 [label=\"\"];\n"
           "  h1 -> h5 [label=\"\"];\n"
           "  h2 -> h0 [label=\"\"];\n"
           "  h2 -> h1 [label=\"\"];\n"
           "  h3 -> h0 [label=\"\"];\n"
           "  h5 -> h3 [label=\"+1\", color=blue, constraint=false];\n"
           "}\n");
}

TEST_CASE("odd names survive") {
  small_program p;
  p.op("a\"b\\c", {"x\xff"}, {"y\n"});
  auto g = build(p);
  CHECK(to_dot(g).find(R"("a\"b\\c#0@cpu:0")") != std::string::npos);
  CHECK(to_json(g).find("y\\n") != std::string::npos);
}

} // TEST_SUITE("graph.graph_export")
