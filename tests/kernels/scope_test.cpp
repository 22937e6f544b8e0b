// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/scope.hpp>

#include <doctest/doctest.h>

namespace troupe {

TEST_SUITE("kernels.scope") {

TEST_CASE("a variable is made empty at first use and found afterwards") {
  scope parameters;
  CHECK(parameters.find("w") == nullptr);
  auto& made = parameters.var("w");
  CHECK_FALSE(made.has_value());
  CHECK(&parameters.var("w") == &made);
  CHECK(parameters.find("w") == &made);
  CHECK(std::as_const(parameters).find("w") == &made);
}

TEST_CASE("references stay valid while more variables come") {
  scope parameters;
  auto& first = parameters.var("a");
  for (int i = 0; i < 1000; ++i)
    parameters.var("v" + std::to_string(i));
  CHECK(&parameters.var("a") == &first);
}

TEST_CASE("names are sorted") {
  scope parameters;
  parameters.var("b");
  parameters.var("a");
  parameters.var("c");
  CHECK(parameters.names() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("the first device works on the scope itself") {
  scope parameters;
  CHECK(&parameters.replica(0) == &parameters);
}

TEST_CASE("each further device has a replica that stays in place") {
  scope parameters;
  auto& third = parameters.replica(3);
  auto& first = parameters.replica(1);
  CHECK(&third != &first);
  CHECK(&third != &parameters);
  CHECK(&parameters.replica(3) == &third);
  parameters.replica(100);
  CHECK(&parameters.replica(1) == &first);
}

TEST_CASE("replicas have variables of their own") {
  scope parameters;
  parameters.var("w");
  CHECK(parameters.replica(1).find("w") == nullptr);
  parameters.replica(1).var("w").set(selected_rows{});
  CHECK_FALSE(parameters.var("w").has_value());
}

TEST_CASE("dropped replicas are made anew, the scope itself stays") {
  scope parameters;
  parameters.var("w").set(selected_rows{});
  parameters.replica(1).var("w").set(selected_rows{});
  parameters.drop_replicas();
  CHECK(parameters.var("w").has_value());
  CHECK(parameters.replica(1).names().empty());
}

} // TEST_SUITE("kernels.scope")

} // namespace troupe
