// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_specification.hpp>

#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/files/descriptor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace troupe::test;
using troupe::descriptor;
using troupe::apps::rank_specification;
using troupe::apps::read_specification;
using troupe::apps::to_bytes;

TEST_SUITE("apps.launch_rank_specification") {

namespace {

/// A file with these bytes, from which one can read.
struct readable {
  temporary_folder folder{};
  descriptor file;

  explicit readable(const std::string& bytes) {
    write_bytes(folder / "bytes", bytes);
    file = descriptor{::open((folder / "bytes").c_str(), O_RDONLY | O_CLOEXEC)};
  }
};

std::string error_of_reading(const std::string& bytes) {
  const readable from(bytes);
  return error_of([&] { read_specification(from.file.get()); });
}

const rank_specification sample{.command = {"a", "\xff\n", ""},
                                .variables = {"NAME=\x80"},
                                .folder = "/f\xfe",
                                .credentials = "secret",
                                .grace = std::chrono::milliseconds(86'400'000),
                                .part = 2,
                                .parts = 3};

} // namespace

TEST_CASE("a specification is read as it was written, and no byte more") {
  const readable from(to_bytes(sample) + "rest");
  const auto got = read_specification(from.file.get());
  CHECK(got.command == sample.command);
  CHECK(got.variables == sample.variables);
  CHECK(got.folder == sample.folder);
  CHECK(got.credentials == sample.credentials);
  CHECK(got.grace == sample.grace);
  CHECK(got.part == 2);
  CHECK(got.parts == 3);
  char rest[5] = {};
  CHECK(::read(from.file.get(), rest, sizeof rest) == 4);
  CHECK(std::string(rest) == "rest");
}

TEST_CASE("a specification of another version is refused") {
  std::istringstream words{run_troupe({"--version"}).out};
  std::string name, version;
  words >> name >> version; // "troupe 0.2.0 (commit ...)"
  const std::string other(version.size(), '9');
  CHECK(error_of_reading(replaced(to_bytes(sample), version, other))
        == "bad_file: troupe launch has version " + other
             + ", but on this host troupe has version " + version);
}

TEST_CASE("a damaged specification is refused") {
  const auto bytes = to_bytes(sample);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(error_of_reading(bytes.substr(0, size))
            .starts_with("io_failure: troupe launch ended"));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x40);
    CHECK(survives([&] {
      const readable from(other);
      read_specification(from.file.get());
    }));
  }
  CHECK(error_of_reading("\xff\xff\xff\xff")
          .starts_with("bad_file: standard input has not"));
}

} // TEST_SUITE("apps.launch_rank_specification")
