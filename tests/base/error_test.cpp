// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace troupe {

TEST_SUITE("base.error") {

TEST_CASE("an error without context says just its message") {
  error failure{errc::bad_file, "params.bin ends early"};
  CHECK(std::string(failure.what()) == "params.bin ends early");
  CHECK(failure.code() == errc::bad_file);
  CHECK(failure.message() == "params.bin ends early");
}

TEST_CASE("the text names every part of the context that is known") {
  error failure{errc::kernel_failure,
                "division by zero",
                {.op = "div_3",
                 .op_type = "elementwise_div",
                 .variable = "x",
                 .device = "cpu:1",
                 .step = 7,
                 .call_stack = {"net.py:12", "main.py:3"}}};
  CHECK(std::string(failure.what())
        == "division by zero (op div_3, type elementwise_div, variable x, "
           "device cpu:1, step 7, made at net.py:12)");
  CHECK(failure.message() == "division by zero");
}

TEST_CASE("step 0 is a known step") {
  error failure{errc::cancelled, "stopped", {.step = 0}};
  CHECK(std::string(failure.what()) == "stopped (step 0)");
}

TEST_CASE("an op named after its type is named once") {
  error failure{errc::cancelled, "stopped", {.op = "relu", .op_type = "relu"}};
  CHECK(std::string(failure.what()) == "stopped (op relu)");
}

TEST_CASE("merging contexts fills what is empty and keeps what is set") {
  error inner{errc::out_of_range, "label 12", {.op = "loss", .step = 4}};
  auto merged = inner.with_context({.op = "outer",
                                    .op_type = "cross_entropy",
                                    .variable = "label",
                                    .device = "cpu:0",
                                    .step = 9,
                                    .call_stack = {"net.py:1"}});
  CHECK(merged.code() == errc::out_of_range);
  CHECK(merged.where().op == "loss");
  CHECK(merged.where().op_type == "cross_entropy");
  CHECK(merged.where().variable == "label");
  CHECK(merged.where().device == "cpu:0");
  CHECK(merged.where().step == 4);
  CHECK(merged.where().call_stack == std::vector<std::string>{"net.py:1"});
  CHECK(std::string(merged.what())
        == "label 12 (op loss, type cross_entropy, variable label, device "
           "cpu:0, step 4, made at net.py:1)");
}

TEST_CASE("merging leaves the original error as it was") {
  error inner{errc::not_found, "no such op"};
  auto merged = inner.with_context({.device = "cpu:0"});
  CHECK(std::string(inner.what()) == "no such op");
  CHECK(std::string(merged.what()) == "no such op (device cpu:0)");
}

TEST_CASE("names with control characters leave a message in one line") {
  const error failure{errc::graph_invalid,
                      "op a\nb reads \"\t\"",
                      {.op = "a\nb#3", .variable = "x\r"}};
  CHECK(failure.message() == R"(op a\x0ab reads "\x09")");
  CHECK(std::string(failure.what())
        == R"(op a\x0ab reads "\x09" (op a\x0ab#3, variable x\x0d))");
  CHECK(failure.where().op == "a\nb#3");
}

TEST_CASE("every code has a name of its own") {
  std::set<std::string_view> names;
  constexpr auto last = static_cast<int>(errc::busy);
  for (int code = 0; code <= last; ++code)
    names.insert(to_string(static_cast<errc>(code)));
  CHECK(names.size() == last + 1);
  CHECK_FALSE(names.contains("unknown"));
  CHECK(to_string(errc::shape_mismatch) == "shape_mismatch");
}

} // TEST_SUITE("base.error")

} // namespace troupe
