// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/attribute.hpp>

#include <support/caught.hpp>

#include <cstdint>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.attribute") {

namespace {

using ints = std::vector<std::int32_t>;
using longs = std::vector<std::int64_t>;
using strings = std::vector<std::string>;

const attribute_map samples{
  {"int", std::int32_t{-3}},
  {"long", std::int64_t{1} << 40},
  {"float", 0.5f},
  {"double", 0.25},
  {"bool", true},
  {"string", std::string("SAME")},
  {"ints", ints{1, 2}},
  {"longs", longs{3, std::int64_t{1} << 40}},
  {"strings", strings{"a", "b"}},
  {"block", block_ref{1}},
};

} // namespace

TEST_CASE("integers of both widths are read as int64") {
  CHECK(samples.get_int("int", 0) == -3);
  CHECK(samples.get_int("long", 0) == std::int64_t{1} << 40);
  CHECK(samples.get_ints("ints", {}) == longs{1, 2});
  CHECK(samples.get_ints("longs", {}) == longs{3, std::int64_t{1} << 40});
}

TEST_CASE("floating values of both widths are read as float") {
  CHECK(samples.get_float("float", 0) == 0.5f);
  CHECK(samples.get_float("double", 0) == 0.25f);
}

TEST_CASE("booleans and strings are read as they are") {
  CHECK(samples.get_bool("bool", false));
  CHECK(samples.get_string("string", "") == "SAME");
  CHECK(samples.get_strings("strings") == strings{"a", "b"});
}

TEST_CASE("an attribute that is not there gives what the caller says") {
  attribute_map none;
  CHECK(none.get_int("axis", -1) == -1);
  CHECK(none.get_float("scale", 2) == 2);
  CHECK(none.get_bool("bias", true));
  CHECK(none.get_string("mode", "max") == "max");
  CHECK(none.get_ints("strides", {1, 1}) == longs{1, 1});
  CHECK(none.get_strings("names").empty());
}

TEST_CASE("an attribute of another type is an error that names both types") {
  auto failure = caught([] { samples.get_int("string", 0); });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure,
             "attribute \"string\" is of type STRING, expected INT or LONG"));
  CHECK(says(caught([] { samples.get_int("bool", 0); }), "BOOLEAN"));
  CHECK(says(caught([] { samples.get_int("float", 0); }), "FLOAT"));
  CHECK(says(caught([] { samples.get_float("int", 0); }), "INT,"));
  CHECK(says(caught([] { samples.get_bool("int", false); }), "BOOLEAN"));
  CHECK(says(caught([] { samples.get_string("strings", ""); }), "STRINGS,"));
  CHECK(says(caught([] { samples.get_ints("long", {}); }), "LONG,"));
  CHECK(says(caught([] { samples.get_strings("block"); }), "BLOCK,"));
}

TEST_CASE("attributes can be set, replaced, found and erased") {
  attribute_map map;
  map.set("axis", std::int32_t{1});
  map.set("axis", std::int64_t{2});
  CHECK(map.size() == 1);
  CHECK(map.has("axis"));
  REQUIRE(map.find("axis"));
  CHECK(*map.find("axis") == attribute{std::int64_t{2}});
  map.erase("axis");
  map.erase("axis");
  CHECK_FALSE(map.has("axis"));
  CHECK(map.find("axis") == nullptr);
}

TEST_CASE("maps are equal if names, types and values are") {
  attribute_map a{{"axis", std::int32_t{1}}};
  attribute_map b{{"axis", std::int32_t{1}}};
  CHECK(a == b);
  b.set("axis", std::int64_t{1});
  CHECK_FALSE(a == b);
}

TEST_CASE("a copy keeps its values when the original changes") {
  attribute_map changed = samples;
  const attribute_map copy = changed;
  changed.set("int", std::int32_t{7});
  changed.set("new", true);
  changed.erase("string");
  CHECK(copy == samples);
  CHECK(changed.get_int("int", 0) == 7);
  CHECK(changed.size() == samples.size());
  CHECK_FALSE(changed.has("string"));
}

TEST_CASE("entries are in the order of names, of equal ones the last") {
  const attribute_map map{{"b", 1}, {"a", 2}, {"b", 3}, {"a", 4}, {"c", 5}};
  std::string text;
  for (const auto& [name, value] : map)
    text += name + std::to_string(std::get<std::int32_t>(value));
  CHECK(text == "a4b3c5");
}

} // TEST_SUITE("kernels.attribute")

} // namespace troupe
