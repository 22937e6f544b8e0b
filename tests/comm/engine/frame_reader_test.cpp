// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/frame_reader.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

using namespace troupe;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.frame_reader") {

namespace {

using bytes = std::vector<std::byte>;

void add_frame(bytes& stream, std::span<const std::byte> message) {
  const frame_head head{message.size()};
  const auto raw = std::as_bytes(std::span{&head, 1});
  stream.insert(stream.end(), raw.begin(), raw.end());
  stream.insert(stream.end(), message.begin(), message.end());
  stream.resize(stream.size() + padding_of(message.size()));
}

bytes random_message(std::size_t size, std::mt19937& random) {
  bytes made(size);
  for (auto& b : made)
    b = static_cast<std::byte>(random());
  return made;
}

/// Gives the reader the stream in parts of at most so many bytes.
std::vector<bytes> read_in_parts(frame_reader& by,
                                 std::span<const std::byte> stream,
                                 std::size_t most, std::mt19937& random) {
  std::vector<bytes> found;
  while (!stream.empty()) {
    const auto space = by.space();
    const auto part =
      std::min({1 + random() % most, stream.size(), space.size()});
    std::copy_n(stream.begin(), part, space.begin());
    stream = stream.subspan(part);
    by.came(part, [&](std::span<const std::byte> message) {
      CHECK(reinterpret_cast<std::uintptr_t>(message.data()) % frame_alignment
            == 0);
      found.emplace_back(message.begin(), message.end());
    });
  }
  return found;
}

} // namespace

TEST_CASE("messages are whole and aligned wherever the stream is cut") {
  std::mt19937 random{7};
  for (const std::size_t most : {1, 5, 40, 3'000, 1'000'000}) {
    CAPTURE(most);
    std::vector<bytes> sent;
    bytes stream;
    for (const std::size_t size : {0, 1, 15, 16, 17, 300, 0, 5'000}) {
      sent.push_back(random_message(size, random));
      add_frame(stream, sent.back());
    }
    if (most > 1'000) { // more than the reader's memory has space for
      sent.push_back(random_message(300'000, random));
      add_frame(stream, sent.back());
      add_frame(stream, sent.emplace_back(random_message(3, random)));
    }
    frame_reader reader;
    CHECK(read_in_parts(reader, stream, most, random) == sent);
  }
}

TEST_CASE("a head that announces much takes no memory for it") {
  frame_reader reader;
  bytes stream;
  add_frame(stream, {});
  const frame_head large{std::uint64_t{1} << 40};
  std::memcpy(stream.data(), &large, sizeof large);
  stream.resize(200'000); // so much has come of it
  std::mt19937 random{1};
  CHECK(read_in_parts(reader, stream, 3'000, random).empty());
  CHECK(reader.space().size() < 2 * stream.size());
}

TEST_CASE("a head that makes no sense is refused") {
  frame_reader reader;
  const frame_head absurd{~std::uint64_t{0}};
  std::memcpy(reader.space().data(), &absurd, sizeof absurd);
  const auto e = caught(
    [&] { reader.came(sizeof absurd, [](std::span<const std::byte>) {}); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "it sent a malformed message"));
}

} // TEST_SUITE("comm.frame_reader")
