// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/failure_codec.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.failure_codec") {

TEST_CASE("an error is unchanged after encoding and decoding") {
  error_context where;
  where.op = "mul#3@cpu:1";
  where.op_type = "mul";
  where.variable = "w";
  where.device = "cpu:1";
  where.step = 12;
  where.call_stack = {"net.cpp:7", "main.cpp:2"};
  for (auto& sent : {error{errc::out_of_range, "label 99 of 10", where},
                     error{errc::invalid_argument, ""}}) {
    const auto got = decode_failure(encode_failure(sent));
    CHECK(got.code() == sent.code());
    CHECK(got.message() == sent.message());
    CHECK(std::string{got.what()} == sent.what());
    CHECK(got.where().step == sent.where().step);
    CHECK(got.where().call_stack == sent.where().call_stack);
  }
}

TEST_CASE("invalid bytes are decoded to an error that says what is wrong") {
  const auto whole = encode_failure({errc::cancelled, "stopped"});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto got = decode_failure(whole.substr(0, length));
    CHECK(got.code() == errc::peer_failure);
    CHECK(says(got, "a failure from another process is cut short"));
  }
  CHECK(says(decode_failure(whole + "x"), "1 bytes too many"));
  auto unknown = whole;
  unknown[0] = '\x7f';
  CHECK(says(decode_failure(unknown), "has an unknown code"));
  auto frames = whole; // the number of frames is last
  frames[frames.size() - 2] = '\x7f';
  CHECK(says(decode_failure(frames), "is cut short"));
}

} // TEST_SUITE("base.failure_codec")
