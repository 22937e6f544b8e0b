// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/idx.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <random>

using namespace troupe;
using test::contains;
using test::error_of;

TEST_SUITE("kernels.idx") {

namespace {

const std::filesystem::path digits =
  std::filesystem::path(TROUPE_DATA) / "digits";

/// An IDX file of `code` whose one axis has `extent` elements.
std::string vector_file(char code, char extent, const std::string& data) {
  return std::string("\0\0", 2) + code + std::string("\1\0\0\0", 4) + extent
         + data;
}

int sum(const tensor& value) {
  auto all = value.values<std::uint8_t>();
  return std::accumulate(all.begin(), all.end(), 0);
}

} // namespace

TEST_CASE("the folder of digits has its pictures and labels") {
  arena memory(make_host_memory_source());
  auto data = read_idx_folder(digits, memory);
  CHECK(data.train.images.dims() == shape{1500, 8, 8});
  CHECK(data.train.labels.dims() == shape{1500});
  CHECK(data.test.images.dims() == shape{297, 8, 8});
  CHECK(sum(data.train.images) == 7477844);
  CHECK(sum(data.train.labels) == 6718);
  CHECK(sum(data.test.images) == 1475957);
  CHECK(sum(data.test.labels) == 1352);
  CHECK(data.train.labels.values<std::uint8_t>()[1] == 8);
}

TEST_CASE("elements of several bytes are big endian") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  test::write_bytes(
    folder / "a",
    vector_file(0x0C, 2, std::string("\x00\x00\x01\x02\xff\xff\xff\xfe", 8)));
  auto ints = read_idx(folder / "a", memory);
  CHECK(ints.type() == dtype::int32);
  CHECK(ints.values<std::int32_t>()[0] == 0x102);
  CHECK(ints.values<std::int32_t>()[1] == -2);
  test::write_bytes(folder / "b",
                    vector_file(0x0D, 1, std::string("\x3f\x80\0\0", 4)));
  CHECK(*read_idx(folder / "b", memory).data<float>() == 1.0f);
}

TEST_CASE("files that are not IDX are named as such") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto reading = [&](const std::string& bytes) {
    test::write_bytes(folder / "a", bytes);
    return error_of([&] { read_idx(folder / "a", memory); });
  };
  CHECK(contains(reading("hello, world"), "a: not an IDX file"));
  CHECK(contains(reading(vector_file(0x0A, 1, "x")), "not an IDX file"));
  CHECK(contains(reading(std::string("\0\0\x08\x09", 4)), "not an IDX file"));
  CHECK(contains(reading(std::string("\0\0\x08\0", 4)), "not an IDX file"));
  CHECK(contains(reading("\x1f\x8b\x08\x08"), "compressed by gzip"));
  CHECK(contains(reading(""), "too short"));
  CHECK(
    contains(error_of([&] { read_idx(folder / "b", memory); }), "not_found"));
}

TEST_CASE("files that are too short or too long are refused with counts") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto reading = [&](const std::string& bytes) {
    test::write_bytes(folder / "a", bytes);
    return error_of([&] { read_idx(folder / "a", memory); });
  };
  CHECK(contains(reading(vector_file(0x08, 3, "ab")),
                 "shape [3] of uint8 needs 3 bytes of data, found 2"));
  CHECK(contains(reading(vector_file(0x08, 3, "abcd")), "found 4"));
  auto huge = std::string("\0\0\x0E\x08", 4) + std::string(32, '\xff');
  CHECK(contains(reading(huge), "found 0"));
  CHECK(memory.peak_bytes() == 0);
}

TEST_CASE("images and labels of different number are refused") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  for (const char* part : {"train", "t10k"})
    for (const char* kind : {"-images-idx3-ubyte", "-labels-idx1-ubyte"})
      std::filesystem::copy(digits / (std::string(part) + kind),
                            folder / (std::string(part) + kind));
  CHECK(error_of([&] { read_idx_folder(folder.path(), memory); }) == "none");
  test::write_bytes(folder / "t10k-labels-idx1-ubyte",
                    vector_file(0x08, 2, "ab"));
  CHECK(contains(error_of([&] { read_idx_folder(folder.path(), memory); }),
                 "2 labels for 297 images"));
  test::write_bytes(folder / "t10k-labels-idx1-ubyte",
                    vector_file(0x0C, 1, "abcd"));
  CHECK(contains(error_of([&] { read_idx_folder(folder.path(), memory); }),
                 "expected uint8 of rank 1, found int32 [1]"));
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  CHECK(contains(error_of([&] { read_idx_folder(folder.path(), memory); }),
                 "not_found"));
}

TEST_CASE("damaged files never crash the reader") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto whole = vector_file(0x0B, 4, "abcdefgh");
  std::mt19937 random(6);
  for (int i = 0; i < 1000; ++i) {
    auto changed = whole.substr(0, random() % (whole.size() + 1));
    if (!changed.empty())
      changed[random() % changed.size()] ^= 1 << random() % 8;
    test::write_bytes(folder / "a", changed);
    REQUIRE(test::survives([&] { read_idx(folder / "a", memory); }));
  }
  CHECK(memory.peak_bytes() < 4096);
}

} // TEST_SUITE("kernels.idx")
