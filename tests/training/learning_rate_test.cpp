// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/learning_rate.hpp>

#include <support/caught.hpp>
#include <training/line_program.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.learning_rate") {

namespace {

/// The ops of a program that update parameters.
std::vector<graph::op_desc*> updates_of(graph::program& main) {
  std::vector<graph::op_desc*> found;
  for (auto& op : main.main().ops)
    if (op.type == "sgd")
      found.push_back(&op);
  return found;
}

void take_rate_from(graph::op_desc& update, const std::string& name) {
  for (auto& slot : update.inputs)
    if (slot.name == "LearningRate")
      slot.arguments = {name};
}

} // namespace

TEST_CASE("updates that share a learning rate have one") {
  const auto main = make_line_program().main;
  CHECK(learning_rates_of(main).size() == 1);
  CHECK(learning_rate_variable(main) == learning_rates_of(main).front());
}

TEST_CASE("a program with several learning rates is refused, with two names") {
  auto main = make_line_program().main;
  const auto first = learning_rate_variable(main);
  take_rate_from(*updates_of(main).back(), "another");
  CHECK(learning_rates_of(main).size() == 2);
  const auto e = caught([&] { learning_rate_variable(main); });
  CHECK(e.code() == errc::invalid_argument);
  CHECK(says(e, "such as " + first + " and another"));
}

TEST_CASE("a learning rate that the program computes cannot be set") {
  auto main = make_line_program().main;
  const auto rate = learning_rate_variable(main);
  main.main().ops.front().outputs.front().arguments = {rate};
  CHECK(says(caught([&] { learning_rate_variable(main); }),
             "computes its learning rate itself"));
}

TEST_CASE("a program without updates has no learning rate") {
  auto main = make_line_program().main;
  std::erase_if(main.main().ops,
                [](const graph::op_desc& op) { return op.type == "sgd"; });
  CHECK(learning_rates_of(main).empty());
  CHECK(caught([&] { learning_rate_variable(main); }).code()
        == errc::not_found);
}

} // TEST_SUITE("training.learning_rate")
