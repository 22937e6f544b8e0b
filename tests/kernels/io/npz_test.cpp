// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/npy.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace troupe;
using test::contains;
using test::error_of;
using test::replaced;

namespace {

const std::filesystem::path data = TROUPE_TEST_DATA;

double sum(const tensor& value, arena& memory) {
  auto wide = cast(value, dtype::float64, memory);
  auto all = wide.values<double>();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

std::string reading(const std::string& name, arena& memory) {
  return error_of([&] { read_npz(data / "npz" / name, memory); });
}

} // namespace

TEST_SUITE("kernels.npz") {

TEST_CASE("feeds that NumPy wrote have its shapes, dtypes and sums") {
  arena memory(make_host_memory_source());
  auto mlp = read_npz(data / "paddle_programs/mlp/feeds.npz", memory);
  REQUIRE(mlp.size() == 2);
  CHECK(mlp.at("image").dims() == shape{8, 16, 784});
  CHECK(mlp.at("image").type() == dtype::float32);
  CHECK(sum(mlp.at("image"), memory) == doctest::Approx(-202.01670928553904));
  CHECK(mlp.at("label").dims() == shape{8, 16, 1});
  CHECK(mlp.at("label").type() == dtype::int64);
  CHECK(sum(mlp.at("label"), memory) == 558);
  auto words =
    read_npz(data / "paddle_programs/word2vec_sparse/feeds.npz", memory);
  CHECK(words.size() == 5);
  CHECK(sum(words.at("first"), memory) == 12284);
  CHECK(sum(words.at("next"), memory) == 13010);
}

TEST_CASE("every element type is read") {
  arena memory(make_host_memory_source());
  auto arrays = read_npz(data / "npz/types.npz", memory);
  CHECK(arrays.size() == 9);
  for (const auto& [name, value] : arrays) {
    INFO(name);
    CHECK(to_string(value.type()) == name);
    CHECK(value.dims() == shape{2, 3});
    CHECK(sum(value, memory) == (name == "bool" ? 4 : 6));
  }
}

TEST_CASE("compressed arrays in Fortran order come out row-major") {
  arena memory(make_host_memory_source());
  auto arrays = read_npz(data / "npz/order.npz", memory);
  auto c = arrays.at("c").values<float>();
  auto fortran = arrays.at("fortran").values<float>();
  CHECK(arrays.at("fortran").dims() == shape{2, 3, 4});
  CHECK(c[23] == 23);
  CHECK(std::equal(c.begin(), c.end(), fortran.begin(), fortran.end()));
  CHECK(arrays.at("scalar").dims() == shape{});
  CHECK(*arrays.at("scalar").data<float>() == 7);
  CHECK(arrays.at("empty").dims() == shape{0, 3});
  CHECK(arrays.at("vector").values<std::int64_t>()[4] == 4);
}

TEST_CASE("arrays that no tensor can hold are refused by type") {
  arena memory(make_host_memory_source());
  CHECK(contains(reading("object.npz", memory),
                 "object.npz: 'x': object arrays are not supported"));
  CHECK(contains(reading("big_endian.npz", memory), "big-endian dtype '>f4'"));
  CHECK(contains(reading("strings.npz", memory), "dtype '<U2'"));
  CHECK(contains(reading("unsigned.npz", memory), "dtype '<u4'"));
  CHECK(contains(reading("structured.npz", memory), "structured arrays"));
  CHECK(contains(reading("absent.npz", memory), "not_found"));
}

TEST_CASE("what is written is read back, and only that file is left") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto arrays = read_npz(data / "npz/types.npz", memory);
  arrays.merge(read_npz(data / "npz/order.npz", memory));
  write_npz(folder / "out.npz", arrays);
  auto again = read_npz(folder / "out.npz", memory);
  CHECK(folder.entries() == 1);
  REQUIRE(again.size() == arrays.size());
  for (const auto& [name, value] : arrays) {
    INFO(name);
    CHECK(again.at(name).type() == value.type());
    CHECK(again.at(name).dims() == value.dims());
    CHECK(std::memcmp(again.at(name).raw(), value.raw(), value.bytes()) == 0);
  }
}

TEST_CASE("an archive without arrays is written and read") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  write_npz(folder / "out.npz", {});
  CHECK(read_npz(folder / "out.npz", memory).empty());
}

TEST_CASE("a dtype that NumPy has not and a tensor without memory are errors") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto value = tensor::make(memory, shape{2}, dtype::bfloat16);
  CHECK(contains(error_of([&] {
                   write_npz(folder / "o", {{"x", value}});
                 }),
                 "bfloat16"));
  CHECK(contains(error_of([&] {
                   write_npz(folder / "o", {{"x", {}}});
                 }),
                 "array 'x': not a plain tensor"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a disk that fills up leaves no file") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto value = tensor::make(memory, shape{1000}, dtype::float32);
  std::fill_n(value.data<float>(), 1000, 1.0f);
  test::file_size_limit limit(2000);
  CHECK(contains(error_of([&] {
                   write_npz(folder / "o", {{"x", value}});
                 }),
                 "io_failure"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("a header that claims more data than the member has is refused") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto value = tensor::make(memory, shape{11}, dtype::float32);
  std::fill_n(value.data<float>(), 11, 1.0f);
  write_npz(folder / "a.npz", {{"x", value}});
  auto bytes = test::read_bytes(folder / "a.npz");
  for (std::string extent : {"(99, )", "(10, )", "(9999999999999, )"}) {
    INFO(extent);
    auto changed = bytes;
    auto at = changed.find("(11, ), }");
    REQUIRE(at != changed.npos);
    changed.replace(at, extent.size() + 3, extent + ", }");
    test::write_bytes(folder / "b.npz", changed);
    CHECK(contains(error_of([&] { read_npz(folder / "b.npz", memory); }),
                   "does not fit 44 bytes"));
  }
  CHECK(memory.peak_bytes() < 4096);
}

TEST_CASE("a directory entry that claims an impossible size is refused") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto bytes = test::read_bytes(data / "npz/zeros.npz");
  REQUIRE(contains(bytes, std::string("\x00\x1b\x06\x00", 4)));
  test::write_bytes(folder / "bomb.npz",
                    replaced(bytes, std::string("\x00\x1b\x06\x00", 4),
                             std::string("\x00\x1b\x06\x70", 4)));
  CHECK(contains(error_of([&] { read_npz(folder / "bomb.npz", memory); }),
                 "claims 1879448320 bytes"));
  CHECK(memory.peak_bytes() == 0);
}

TEST_CASE("damaged data fails its checksum") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto bytes = test::read_bytes(data / "npz/types.npz");
  auto at = bytes.find("'shape': (2, 3), }");
  REQUIRE(at != bytes.npos);
  auto first_value = bytes.find('\n', at) + 1;
  bytes[first_value] ^= 1;
  test::write_bytes(folder / "a.npz", bytes);
  CHECK(contains(error_of([&] { read_npz(folder / "a.npz", memory); }), "CRC"));
}

TEST_CASE("an archive cut off anywhere is an error, never a crash") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  auto bytes = test::read_bytes(data / "npz/order.npz");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    test::write_bytes(folder / "a.npz", bytes.substr(0, length));
    auto message = error_of([&] { read_npz(folder / "a.npz", memory); });
    INFO(length);
    CHECK(contains(message, "bad_file"));
  }
}

TEST_CASE("flipped bits are an error or other values, never a crash") {
  arena memory(make_host_memory_source());
  test::temporary_folder folder;
  std::mt19937 random(5);
  for (const char* name : {"order.npz", "types.npz"}) {
    auto bytes = test::read_bytes(data / "npz" / name);
    for (int i = 0; i < 1500; ++i) {
      auto changed = bytes;
      for (auto flips = random() % 3 + 1; flips > 0; --flips)
        changed[random() % changed.size()] ^= 1 << random() % 8;
      test::write_bytes(folder / "a.npz", changed);
      REQUIRE(test::survives([&] { read_npz(folder / "a.npz", memory); }));
    }
  }
  CHECK(memory.peak_bytes() < 4 << 20);
}

} // TEST_SUITE("kernels.npz")

TEST_SUITE("kernels.npz") {

TEST_CASE("an array that cannot be written is known before it is there") {
  const test::temporary_folder folder;
  arena memory(make_host_memory_source());
  const std::string far(70'000, 'n');
  const std::vector<std::string> names{"x",     "a/b",  "", "\xc3\xa4",
                                       "a\x1b", "\xff", far};
  for (const auto& name : names)
    for (const auto type : {dtype::float32, dtype::boolean, dtype::bfloat16}) {
      CAPTURE(name);
      const auto required = error_of([&] { require_npz_array(name, type); });
      const auto written = error_of([&] {
        write_npz(folder / "f.npz", {{name, tensor::make(memory, {1}, type)}});
      });
      CHECK(required == written);
    }
  CHECK(contains(error_of([] { require_npz_array("a\x1b", dtype::int8); }),
                 "cannot store array 'a\\x1b'"));
}

TEST_CASE("an array that there is no memory for is named, and its file") {
  const test::temporary_folder folder;
  const auto path = folder.path() / "large.npz";
  {
    arena memory(make_host_memory_source());
    write_npz(path, {{"x", tensor::make(memory, {1 << 20}, dtype::float32)}});
  }
  arena memory(make_host_memory_source());
  set_host_memory_limit(host_memory_reserved() + 1'000'000);
  const auto text = error_of([&] { read_npz(path, memory); });
  set_host_memory_limit(0);
  CHECK(contains(text, "large.npz: 'x': no memory for 4194304 bytes"));
}

} // TEST_SUITE("kernels.npz")

TEST_SUITE("kernels.npy") {

TEST_CASE("a header is 64-byte aligned and reads back") {
  auto text = make_npy_header(dtype::int16, shape{3, 0, 7});
  CHECK(text.size() % 64 == 0);
  auto header = parse_npy_header(text, "x");
  CHECK(header.type == dtype::int16);
  CHECK(header.dims == shape{3, 0, 7});
  CHECK(header.data_offset == text.size());
  CHECK_FALSE(header.fortran_order);
}

TEST_CASE("malformed headers say what is wrong") {
  auto parse = [](std::string dictionary) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(dictionary.size());
    text += '\0';
    return error_of([&] { parse_npy_header(text + dictionary, "x"); });
  };
  const std::string rest = "'fortran_order': False, 'shape': (1,)}";
  CHECK(parse("{'descr': '<f4', " + rest) == "none");
  CHECK(contains(parse("{" + rest), "is missing"));
  CHECK(contains(parse("{'descr': '<f4', 'other': 1, " + rest), "unknown key"));
  CHECK(contains(parse("{'descr': '<f4"), "does not end"));
  CHECK(contains(parse("{'descr': '|f4', " + rest), "not supported"));
  CHECK(contains(parse("{'shape': (-1,)"), "bad extent"));
  CHECK(contains(parse("{'shape': (99999999999999999999,)"), "bad extent"));
  CHECK(contains(parse("{'shape': (1,1,1,1,1,1,1,1,1)"), "9 axes"));
  CHECK(contains(parse("{'descr': '<f4', 'fortran_order': 0"), "neither"));
  CHECK(contains(parse("{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(4294967296, 4294967296, 4294967296)}"),
                 "too large"));
  CHECK(contains(error_of([] { parse_npy_header("PK", "x"); }),
                 "x: not an .npy array"));
}

} // TEST_SUITE("kernels.npy")
