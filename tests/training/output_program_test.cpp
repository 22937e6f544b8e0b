// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/output_program.hpp>

#include <support/caught.hpp>
#include <troupe/graph/models.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.output_program") {

TEST_CASE("only what the outputs need is kept: no loss, no label") {
  const auto net = graph::build_model("mlp");
  const auto feeds = graph::feed_names(net.test);
  CHECK(feeds == std::vector<std::string>{"image", "label"});
  std::string scores;
  for (auto& op : net.test.main().ops)
    if (op.type == "softmax_with_cross_entropy")
      scores = op.only_input("Logits");
  REQUIRE_FALSE(scores.empty());
  const std::vector<std::string> outputs{scores};
  const auto made = make_output_program(net.test, outputs);
  CHECK(graph::feed_names(made) == std::vector<std::string>{"image"});
  CHECK(made.main().ops.size() < net.test.main().ops.size());
}

TEST_CASE("outputs that nothing computes, and none at all, are refused") {
  const auto net = graph::build_model("mlp");
  const std::vector<std::string> unknown{"nowhere"};
  const auto why = caught([&] { make_output_program(net.test, unknown); });
  CHECK(why.code() == errc::not_found);
  CHECK(why.where().variable == "nowhere");
  CHECK(caught([&] { make_output_program(net.test, {}); }).code()
        == errc::invalid_argument);
}

} // TEST_SUITE("training.output_program")
