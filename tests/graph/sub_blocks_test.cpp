// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/sub_blocks.hpp>

#include "small_program.hpp"

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace troupe::graph {

using test::caught;
using testing::names;
using testing::small_program;

TEST_SUITE("graph.sub_blocks") {

namespace {

op_desc make_op(const std::string& type, const names& in, const names& out) {
  op_desc op;
  op.type = type;
  op.set_input("X", in);
  op.set_output("Out", out);
  return op;
}

op_desc running(const std::string& type, std::int32_t block) {
  auto op = make_op(type, {"going"}, {});
  op.attributes.set("sub_block", block_ref{block});
  return op;
}

/// A block with these ops whose own variables are `locals`.
void add_block(program& p, const names& locals, std::vector<op_desc> ops,
               std::int32_t parent = 0, std::int32_t forward = -1) {
  block b;
  b.index = static_cast<std::int32_t>(p.blocks.size());
  b.parent = parent;
  b.forward_block = forward;
  for (auto& name : locals)
    b.add_var({.name = name, .dims = {1}});
  b.ops = std::move(ops);
  p.blocks.push_back(std::move(b));
}

/// x -> while { t = x; x = t; inner { w += t } } -> y
program nested() {
  auto p = small_program{}
             .temporary("x")
             .temporary("y")
             .temporary("going")
             .persistable("w")
             .op("relu", {"x"}, {"y"})
             .desc;
  p.main().ops.insert(p.main().ops.begin(), running("while", 1));
  add_block(p, {"t"},
            {make_op("copy", {"x"}, {"t"}), running("conditional_block", 2),
             make_op("copy", {"t"}, {"x"})});
  add_block(p, {}, {make_op("add", {"w", "t"}, {"w"})}, 1);
  return p;
}

} // namespace

TEST_CASE("an op lists what its block and those within touch outside") {
  const auto p = expose_sub_blocks(nested());
  const auto& outer = p.main().ops.front();
  CHECK(outer.input(outer_reads) == names{"going", "w", "x"});
  CHECK(outer.output(outer_writes) == names{"w", "x"});
  const auto& inner = p.blocks[1].ops[1];
  CHECK(inner.input(outer_reads) == names{"t", "w"});
  CHECK(inner.output(outer_writes) == names{"w"});
}

TEST_CASE("exposing twice changes nothing") {
  const auto once = expose_sub_blocks(nested());
  const auto twice = expose_sub_blocks(once);
  CHECK(twice.main().ops.front().inputs == once.main().ops.front().inputs);
  CHECK(twice.main().ops.front().outputs == once.main().ops.front().outputs);
}

TEST_CASE("what adds up gradients over steps, counts and updates is Optimize") {
  auto p = small_program{}
             .persistable("steps")
             .persistable("sum")
             .op("relu", {"x"}, {"w@GRAD"}, role_backward)
             .op("increment", {"steps"}, {"steps"})
             .op("equal", {"steps", "third"}, {"every_third"})
             .op("add", {"w@GRAD", "sum"}, {"sum"}, role_backward)
             .desc;
  p.main().ops[3].attributes.set("grad_merge_cond_name",
                                 std::string("every_third"));
  auto branch = running("conditional_block", 1);
  branch.set_input("Cond", {"every_third"});
  p.main().ops.push_back(branch);
  add_block(p, {}, {make_op("sgd", {"sum"}, {"w"})});
  const auto exposed = expose_sub_blocks(p);
  const auto& ops = exposed.main().ops;
  CHECK(ops[0].role() == role_backward);
  for (std::size_t i = 1; i < ops.size(); ++i)
    CHECK(ops[i].role() == role_optimize);
}

TEST_CASE("what a block writes first is not read outside") {
  auto p = nested();
  p.blocks[1].ops.insert(p.blocks[1].ops.begin(), make_op("fill", {}, {"x"}));
  const auto exposed = expose_sub_blocks(p);
  CHECK(exposed.main().ops.front().input(outer_reads) == names{"going", "w"});
}

TEST_CASE("a gradient block has the names of the block it is the gradient of") {
  auto p = nested();
  p.main().ops.push_back(running("while_grad", 3));
  add_block(p, {"t@GRAD"}, {make_op("copy_grad", {"t", "x"}, {"t@GRAD"})}, 0,
            1);
  CHECK(local_names(p, 3).contains("t"));
  const auto exposed = expose_sub_blocks(p);
  CHECK(exposed.main().ops.back().input(outer_reads) == names{"x"});
}

TEST_CASE("persistable variables of blocks belong to the main block") {
  auto p = nested();
  p.blocks[2].add_var({.name = "rate", .dims = {1}, .persistable = true});
  p.blocks[2].ops.push_back(make_op("fill", {}, {"rate"}));
  const auto exposed = expose_sub_blocks(p);
  REQUIRE(exposed.main().find_var("rate") != nullptr);
  CHECK(exposed.main().var("rate").persistable);
  CHECK(exposed.main().ops.front().output(outer_writes)
        == names{"rate", "w", "x"});
}

TEST_CASE("a block that is not there or runs itself is refused") {
  auto absent = nested();
  absent.blocks[1].ops.push_back(running("while", 7));
  CHECK(caught([&] { expose_sub_blocks(absent); }).code()
        == errc::graph_invalid);
  auto circular = nested();
  circular.blocks[2].ops.push_back(running("while", 1));
  CHECK(caught([&] { expose_sub_blocks(circular); }).code()
        == errc::graph_invalid);
}

TEST_CASE("what a file says in the slots of outer variables counts nothing") {
  auto p = nested();
  auto& loop = p.main().ops.front();
  loop.set_input(std::string{outer_reads}, {"y"});
  loop.set_output(std::string{outer_writes}, {"y"});
  const auto exposed = expose_sub_blocks(p);
  CHECK(exposed.main().ops.front().input(outer_reads)
        == names{"going", "w", "x"});
  CHECK(exposed.main().ops.front().output(outer_writes) == names{"w", "x"});
  p.blocks[1].ops.push_back(running("while", 1));
  CHECK(caught([&] { expose_sub_blocks(p); }).code() == errc::graph_invalid);
}

TEST_CASE("blocks may be inside each other as deep as the limit, no deeper") {
  const auto chain = [](std::int32_t depth) {
    program p;
    p.main().ops.push_back(running("while", 1));
    for (std::int32_t i = 1; i < depth; ++i)
      add_block(p, {}, {running("while", i + 1)}, i - 1);
    add_block(p, {}, {make_op("copy", {"x"}, {"y"})}, depth - 1);
    return p;
  };
  CHECK_NOTHROW(expose_sub_blocks(chain(32)));
  for (const std::int32_t depth : {33, 100'000}) {
    const auto e = caught([&] { expose_sub_blocks(chain(depth)); });
    CHECK(e.code() == errc::graph_invalid);
    CHECK(test::says(e, "more than 32 blocks inside each other"));
    CHECK(caught([&] { for_each_op(chain(depth), [](auto&) {}); }).code()
          == errc::graph_invalid);
  }
}

TEST_CASE("blocks that are run 2^20 times together are refused") {
  program p;
  constexpr std::int32_t depth = 30;
  p.main().ops.push_back(running("while", 1));
  for (std::int32_t i = 1; i < depth; ++i)
    add_block(p, {}, {running("while", i + 1), running("while", i + 1)}, i - 1);
  add_block(p, {}, {make_op("copy", {"x"}, {"y"})}, depth - 1);
  CHECK(test::says(caught([&] { expose_sub_blocks(p); }), "1048576"));
  CHECK(test::says(caught([&] { for_each_op(p, [](auto&) {}); }), "1048576"));
  CHECK(test::says(caught([&] { check_gradients_in_main(p); }), "1048576"));
}

TEST_CASE("gradients of gradients are as many as the limit") {
  program p;
  p.main().ops.push_back(running("while", 40));
  for (std::int32_t i = 1; i <= 40; ++i)
    add_block(p, {}, {make_op("copy", {"x"}, {"y"})}, 0, i - 1);
  CHECK(test::says(caught([&] { expose_sub_blocks(p); }),
                   "gradient of more than 32 blocks"));
}

TEST_CASE("feeds that only a block reads are fed") {
  auto p = nested();
  p.main().add_var({.name = "inside_only", .dims = {-1}});
  p.blocks[2].ops.push_back(make_op("use", {"inside_only"}, {"w"}));
  const auto fed = feed_names(p);
  CHECK(std::ranges::count(fed, "inside_only") == 1);
}

TEST_CASE("readers and writers wait for an op that runs a block") {
  small_program whole;
  whole.desc = nested();
  whole.op("fill", {}, {"going"});
  const auto g = testing::build(whole);
  const auto loop = testing::find_op(g, "while");
  const auto relu = testing::find_op(g, "relu");
  const auto x = g.op(relu).inputs.front();
  CHECK(g.var(x).name == "x");
  CHECK(g.var(x).generator == loop);
  CHECK(testing::has_edge(g, loop, testing::find_op(g, "fill"),
                          edge_kind::write_after_read, 0));
}

TEST_CASE("a gradient that is completed in a block is refused over devices") {
  auto p = nested();
  auto op = make_op("mul_grad", {"x"}, {"w@GRAD"});
  op.attributes.set("op_role", static_cast<std::int32_t>(role_backward));
  op.attributes.set("op_role_var", std::vector<std::string>{"w", "w@GRAD"});
  p.blocks[2].ops.push_back(op);
  const auto e = caught([&] { check_gradients_in_main(p); });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(test::says(e, "\"w@GRAD\" in a sub-block"));
  p.main().ops.push_back(op);
  CHECK_NOTHROW(check_gradients_in_main(p));
}
} // TEST_SUITE("graph.sub_blocks")

} // namespace troupe::graph
