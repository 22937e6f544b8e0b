// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/run_description.hpp>

#include <doctest/doctest.h>

#include <string>

using troupe::actors::first_difference;

TEST_SUITE("actors.run_description") {

TEST_CASE("equal descriptions have no difference") {
  CHECK(first_difference("", "", 1).empty());
  CHECK(first_difference("a\t1\nb\t2\n", "a\t1\nb\t2\n", 1).empty());
}

TEST_CASE("the first line that differs is named with both values") {
  CHECK(first_difference("a\t1\nb\t2\nc\t3\n", "a\t1\nb\t4\nc\t5\n", 2)
        == "b: 2 in process 0, 4 in process 2");
  CHECK(first_difference("a\t\n", "a\tx\n", 1)
        == "a:  in process 0, x in process 1");
}

TEST_CASE("a value that a process does not need equals any value") {
  const std::string none = "a\tnot needed in this process\nb\t2\n";
  CHECK(first_difference(none, "a\t1\nb\t2\n", 1).empty());
  CHECK(first_difference("a\t1\nb\t2\n", none, 1).empty());
  CHECK(first_difference(none, "a\t1\nb\t3\n", 1)
        == "b: 2 in process 0, 3 in process 1");
}

TEST_CASE("lines that only one process has are named") {
  CHECK(first_difference("a\t1\n", "a\t1\nb\t2\n", 1)
        == "nothing in process 0, b in process 1");
  CHECK(first_difference("a\t1\nb\t2\n", "a\t1\n", 1)
        == "b in process 0, nothing in process 1");
  CHECK(first_difference("a\t1\n", "b\t1\n", 3)
        == "a in process 0, b in process 3");
}

TEST_CASE("for long values only the part that differs is shown") {
  const std::string same(1000, 's');
  const auto text = first_difference("a\t" + same + "first" + same + "\n",
                                     "a\t" + same + "other" + same + "\n", 1);
  CHECK(text.size() < 500);
  CHECK(text.find("first") != text.npos);
  CHECK(text.find("other") != text.npos);
}

TEST_CASE("a malformed description differs from a correct one") {
  for (const std::string text : {"\n\n\n", "\t", "no end", "\t\t\n\t", "a\n"}) {
    CAPTURE(text);
    CHECK_FALSE(first_difference("a\t1\n", text, 1).empty());
    CHECK_FALSE(first_difference(text, "a\t1\n", 1).empty());
  }
}

} // TEST_SUITE("actors.run_description")
