// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/quoted_name.hpp>

#include <doctest/doctest.h>

using troupe::quoted_name;

TEST_SUITE("base.quoted_name") {

TEST_CASE("plain names stand in quotes as they are") {
  CHECK(quoted_name("fc_0.w_0") == "'fc_0.w_0'");
  CHECK(quoted_name("größe") == "'größe'");
  CHECK(quoted_name("") == "''");
}

TEST_CASE("control characters are escaped, so that a message has one line") {
  CHECK(quoted_name({"a\n\0\x7f", 4}) == R"('a\x0a\x00\x7f')");
}

TEST_CASE("long names are cut") {
  CHECK(quoted_name(std::string(121, 'a'))
        == "'" + std::string(120, 'a') + "...'");
  CHECK(quoted_name(std::string(120, 'a'))
        == "'" + std::string(120, 'a') + "'");
}

} // TEST_SUITE("base.quoted_name")
