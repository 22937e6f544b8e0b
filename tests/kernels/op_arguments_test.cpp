// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/op_arguments.hpp>
#include <troupe/kernels/variable.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace troupe {

TEST_SUITE("kernels.op_arguments") {

namespace {

struct some_arguments {
  variable a, b, c;
  std::vector<op_slot> slots{
    {"X", {"a", "b"}}, {"None", {}}, {"Y", {"@EMPTY@", "c"}}};
  std::vector<variable*> variables{&a, &b, nullptr, &c};
  op_arguments all{slots, variables.data()};
};

/// "slot.name" of each argument; "-" behind absent ones.
std::string listed(const op_arguments& all) {
  std::string text;
  all.for_each([&](const op_argument& arg) {
    text += std::string(arg.slot) + "." + std::string(arg.name)
            + (arg.var ? " " : "- ");
  });
  return text;
}

} // namespace

TEST_CASE_FIXTURE(some_arguments, "a slot has its variables") {
  CHECK(all.size() == 4);
  REQUIRE(all.in("X").size() == 2);
  CHECK(all.in("X")[1] == &b);
  REQUIRE(all.in("Y").size() == 2);
  CHECK(all.in("Y")[0] == nullptr);
  CHECK(all.in("Y")[1] == &c);
  CHECK(all.in("None").empty());
  CHECK(all.in("Z").empty());
}

TEST_CASE_FIXTURE(some_arguments, "an argument has a name") {
  CHECK(all.name("X", 1) == "b");
  CHECK(all.name("Y", 1) == "c");
}

TEST_CASE_FIXTURE(some_arguments, "arguments are visited slot by slot") {
  CHECK(listed(all) == "X.a X.b Y.@EMPTY@- Y.c ");
  std::size_t slots_seen = 0;
  all.for_each_slot([&](const op_slot& slot, auto found) {
    CHECK(slot.arguments.size() == found.size());
    ++slots_seen;
  });
  CHECK(slots_seen == 3);
}

TEST_CASE_FIXTURE(some_arguments, "a list made by hand has the same form") {
  argument_list made{{"X", "a", &a}, {"X", "b", &b}};
  made.add({"Y", "@EMPTY@", nullptr});
  made.add({"Y", "c", &c});
  CHECK(listed(made) == listed(all));
  CHECK(made.view().in("Y")[1] == &c);
  CHECK(argument_list{}.view().size() == 0);
}

} // TEST_SUITE("kernels.op_arguments")

} // namespace troupe
