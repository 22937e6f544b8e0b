// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include <doctest/doctest.h>

using namespace troupe::model;

TEST_SUITE("model.machine") {

namespace {

enum shared : variable { x, y, seen_by_first, seen_by_second };
using kind = instruction::kind;

instruction set(variable to) {
  return {
    "set", kind::plain, 0, {}, [to](memory_access& a) { a.store(to, 1); }};
}
instruction set_release(variable to) {
  return {"set", kind::plain, 0, {}, [to](memory_access& a) {
            a.store_release(to, 1);
          }};
}
instruction fence() {
  return {"fence", kind::release, 0, {}, [](memory_access&) {}};
}
/// Copies a variable to where the test can read it.
instruction see(variable from, variable to) {
  return {"see", kind::release, to, {}, [=](memory_access& a) {
            a.shared(to) = a.load(from);
          }};
}
/// The same, early enough to be before the thread's own writes are visible.
instruction look(variable from) {
  return {"look", kind::plain, 0, {}, [=](memory_access& a) {
            a.local(0) = a.load(from);
          }};
}
instruction tell(variable to) {
  return {"tell", kind::release, to, {}, [=](memory_access& a) {
            a.shared(to) = a.local(0);
          }};
}

/// Whether the run may end with these two values seen.
bool possible(memory rules, std::vector<program> threads, value first,
              value second) {
  machine m;
  m.rules = rules;
  m.threads = std::move(threads);
  m.at_end = [=](const state& s) -> std::string {
    const auto same =
      s.shared[seen_by_first] == first && s.shared[seen_by_second] == second;
    return same ? "seen" : "";
  };
  return explore(m).failure == "seen";
}

} // namespace

TEST_CASE("two threads that write and then look may miss each other") {
  const program a{set(x), look(y), tell(seen_by_first)};
  const program b{set(y), look(x), tell(seen_by_second)};
  CHECK_FALSE(possible(memory::sequential, {a, b}, 0, 0));
  CHECK(possible(memory::buffered, {a, b}, 0, 0));
  CHECK(possible(memory::weak, {a, b}, 0, 0));
  CHECK(possible(memory::sequential, {a, b}, 1, 1));
}

TEST_CASE("with fences between they do not") {
  const program a{set(x), fence(), look(y), tell(seen_by_first)};
  const program b{set(y), fence(), look(x), tell(seen_by_second)};
  for (auto rules : {memory::buffered, memory::weak})
    CHECK_FALSE(possible(rules, {a, b}, 0, 0));
  const program c{set(y), look(x), tell(seen_by_second)};
  CHECK(possible(memory::buffered, {a, c}, 0, 0));
}

TEST_CASE("a flag may overtake what it announces unless it is released") {
  const program reader{see(y, seen_by_first), see(x, seen_by_second)};
  const program plain{set(x), set(y)};
  const program released{set(x), set_release(y)};
  CHECK_FALSE(possible(memory::buffered, {plain, reader}, 1, 0));
  CHECK(possible(memory::weak, {plain, reader}, 1, 0));
  CHECK_FALSE(possible(memory::weak, {released, reader}, 1, 0));
}

TEST_CASE("a thread that waits for ever is an end, with the way to it") {
  machine m;
  m.threads = {
    {set(x),
     {"wait", kind::plain, 0, [](memory_access& a) { return a.load(y); },
      [](memory_access&) {}}}};
  m.at_end = [](const state& s) { return s.shared[x] ? "waits" : ""; };
  const auto result = explore(m);
  CHECK(result.failure == "waits");
  CHECK(result.trace == "0: set\n");
  CHECK(result.ends == 1);
}

} // TEST_SUITE("model.machine")
