// SPDX-License-Identifier: Apache-2.0
#include "gloo_group.hpp"

#include <troupe/comm/engine/key_store.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.engine.key_store") {

namespace {

std::optional<std::string> text_at(key_store& in, const std::string& key) {
  const auto found = in.find(key);
  if (!found)
    return std::nullopt;
  return std::string{found->begin(), found->end()};
}

} // namespace

TEST_CASE("all processes find what one has published, and nothing before") {
  const meeting_folder at;
  const auto one = make_folder_store(at.path()),
             other = make_folder_store(at.path());
  const std::string value{"a\0\n\xff", 4};
  CHECK(!other->find("rank_0"));
  one->publish("rank_0", value);
  one->publish("empty", {});
  CHECK(text_at(*other, "rank_0") == value);
  CHECK(text_at(*other, "rank_0") == value); // it stays
  CHECK(text_at(*one, "rank_0") == value);
  CHECK(text_at(*other, "empty") == "");
  CHECK(!other->find("rank_1"));
}

TEST_CASE("a value is found as a whole or not at all") {
  const std::string value(4 << 20, 'v');
  for (int round = 0; round < 5; ++round) {
    const meeting_folder at;
    const auto writer = make_folder_store(at.path()),
               reader = make_folder_store(at.path());
    const std::jthread thread{[&] { writer->publish("key", value); }};
    std::optional<std::string> found;
    while (!found)
      found = text_at(*reader, "key");
    CHECK(found->size() == value.size());
  }
}

TEST_CASE("a store removes what it has published, and nothing else") {
  const meeting_folder at;
  auto one = make_folder_store(at.path());
  const auto other = make_folder_store(at.path());
  one->publish("a", std::string{"1"});
  one->publish("b", std::string{"2"});
  other->publish("c", std::string{"3"});
  one->clear();
  CHECK(!other->find("a"));
  CHECK(!other->find("b"));
  CHECK(text_at(*one, "c") == "3");
  one->publish("a", std::string{"4"});
  one.reset(); // removes it, too
  CHECK(!other->find("a"));
  CHECK(text_at(*other, "c") == "3");
  other->clear();
  other->clear();
  CHECK(at.is_empty());
}

TEST_CASE("a key that is there already is refused, and stays as it is") {
  const meeting_folder at;
  const auto one = make_folder_store(at.path());
  one->publish("rank_0", std::string{"old"});
  {
    const auto other = make_folder_store(at.path());
    const auto e =
      caught([&] { other->publish("rank_0", std::string{"new"}); });
    CHECK(e.code() == troupe::errc::io_failure);
    CHECK(says(e, at.path() + "/rank_0 is there already"));
  }
  CHECK(text_at(*one, "rank_0") == "old");
}

TEST_CASE("a folder that does not exist has no values and takes none") {
  const meeting_folder at;
  const auto store = make_folder_store(at.path() + "/none");
  CHECK(!store->find("a"));
  const auto e = caught([&] { store->publish("a", std::string{"1"}); });
  CHECK(e.code() == troupe::errc::io_failure);
  CHECK(says(e, "/none/a.new cannot be written"));
}

} // TEST_SUITE("comm.engine.key_store")
