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

TEST_CASE("bytes that are no UTF-8, and its control characters, are escaped") {
  CHECK(quoted_name("a\xff\x90z") == R"('a\xff\x90z')");
  CHECK(quoted_name("\xc2\x9b") == R"('\xc2\x9b')");         // U+009B
  CHECK(quoted_name("\xc0\xaf") == R"('\xc0\xaf')");         // too long
  CHECK(quoted_name("\xed\xa0\x80") == R"('\xed\xa0\x80')"); // a surrogate
  CHECK(quoted_name("\xe2\x82") == R"('\xe2\x82')");         // cut off
  CHECK(quoted_name("\xe2\x82\xac \xf0\x9f\x98\x80")
        == "'\xe2\x82\xac \xf0\x9f\x98\x80'");
}

TEST_CASE("characters that change how a terminal shows a line are escaped") {
  CHECK(quoted_name("a\xe2\x80\xa8z") == R"('a\xe2\x80\xa8z')"); // U+2028
  CHECK(quoted_name("a\xe2\x80\xaez") == R"('a\xe2\x80\xaez')"); // U+202E
  CHECK(quoted_name("a\xe2\x81\xa6z") == R"('a\xe2\x81\xa6z')"); // U+2066
  CHECK(quoted_name("a\xf3\xa0\x80\x81z")
        == R"('a\xf3\xa0\x80\x81z')");                        // U+E0001
  CHECK(quoted_name("a\xe2\x80\xa7z") == "'a\xe2\x80\xa7z'"); // U+2027
}

TEST_CASE("long names are cut") {
  CHECK(quoted_name(std::string(121, 'a'))
        == "'" + std::string(120, 'a') + "...'");
  CHECK(quoted_name(std::string(120, 'a'))
        == "'" + std::string(120, 'a') + "'");
}

} // TEST_SUITE("base.quoted_name")
