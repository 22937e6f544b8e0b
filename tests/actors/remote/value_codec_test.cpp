// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/value_codec.hpp>

#include <support/caught.hpp>

#include <troupe/base/random.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

TEST_SUITE("actors.value_codec") {

namespace {

arena& memory() {
  static arena made{make_host_memory_source()};
  return made;
}

tensor filled(const shape& dims, dtype type, std::uint8_t first = 1) {
  auto t = tensor::make(memory(), dims, type);
  for (std::size_t i = 0; i < t.bytes(); ++i)
    t.raw()[i] = static_cast<std::byte>(first++ % 2);
  return t;
}

variable holding(tensor t) {
  variable v;
  v.set(std::move(t));
  return v;
}

variable rows_value() {
  variable v;
  v.set(selected_rows{{2, 0, 2}, 5, filled({3, 2}, dtype::float32)});
  return v;
}

bool same(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims()
         && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

std::string encoded(const variable& value) {
  return std::string{encode_value(value, memory()).text()};
}

/// Decodes into a variable that has a value. True if the bytes are refused with
/// the right error and the value is unchanged.
bool refused(std::string_view bytes) {
  auto target = holding(filled({7}, dtype::int32));
  try {
    decode_value(bytes, memory(), target);
  } catch (const error& e) {
    return e.code() == errc::peer_failure && target.is_tensor()
           && target.as_tensor().dims() == shape{7};
  }
  return false;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// A dense value's header, as `encode_value` writes it.
std::string dense_header(dtype type, const std::vector<std::int64_t>& dims) {
  std::string out;
  put(out, std::uint8_t{1});
  put(out, type);
  put(out, static_cast<std::uint8_t>(dims.size()));
  for (auto d : dims)
    put(out, d);
  put(out, std::uint8_t{0}); // plain
  return out;
}

/// A layout like those of libraries: elements in reverse order, after one
/// element of padding.
class backwards final : public layout {
public:
  explicit backwards(std::size_t count) : count_(count) {}
  std::size_t bytes() const noexcept override {
    return (count_ + 1) * sizeof(float);
  }
  bool equals(const layout& other) const noexcept override {
    return &other == this;
  }
  std::string name() const override { return "backwards"; }
  void to_plain(const tensor& source, tensor& target, stream*) const override {
    for (std::size_t i = 0; i < count_; ++i)
      target.data<float>()[i] = source.data<float>()[count_ - i];
  }

private:
  std::size_t count_;
};

} // namespace

TEST_CASE("dense values of all dtypes and ranks survive a round trip") {
  const std::vector<shape> all{
    {}, {0}, {1}, {5}, {2, 3}, {3, 0, 2}, {1, 1, 1, 1, 1, 1, 2, 2}};
  for (int type = 0; type <= static_cast<int>(dtype::boolean); ++type)
    for (auto& dims : all) {
      const auto value = filled(dims, static_cast<dtype>(type));
      variable back;
      decode_value(encoded(holding(value)), memory(), back);
      CAPTURE(to_string(value.type()));
      CAPTURE(to_string(dims));
      REQUIRE(back.is_tensor());
      CHECK(same(back.as_tensor(), value));
      CHECK(back.as_tensor().raw() != value.raw());
    }
}

TEST_CASE("row-sparse values with repeated rows survive a round trip") {
  const auto value = rows_value();
  variable back;
  decode_value(encoded(value), memory(), back);
  REQUIRE(back.is_rows());
  CHECK(back.as_rows().rows == std::vector<std::int64_t>{2, 0, 2});
  CHECK(back.as_rows().height == 5);
  CHECK(same(back.as_rows().values, value.as_rows().values));
}

TEST_CASE("row-sparse values without rows survive a round trip") {
  variable value;
  value.set(selected_rows{{}, 9, filled({0, 4}, dtype::float32)});
  variable back;
  decode_value(encoded(value), memory(), back);
  REQUIRE(back.is_rows());
  CHECK(back.as_rows().rows.empty());
  CHECK(back.as_rows().height == 9);
}

TEST_CASE("sequences survive a round trip, and cut ones are refused") {
  auto value = filled({5, 2}, dtype::float32);
  value.set_levels(make_lod({{0, 1, 2}, {0, 2, 5}}, 5));
  variable back;
  const auto bytes = encoded(holding(value));
  decode_value(bytes, memory(), back);
  CHECK(*back.as_tensor().levels() == *value.levels());
  for (std::size_t cut = 1; cut < bytes.size(); ++cut)
    CHECK(
      caught([&] { decode_value(bytes.substr(0, cut), memory(), back); }).code()
      == errc::peer_failure);
}

TEST_CASE("a layout that the receiver knows survives a round trip") {
  auto block = memory().allocate(4 * sizeof(float));
  const auto format = std::make_shared<backwards>(3);
  const tensor value{{3}, dtype::float32, block, format};
  for (int i = 0; i < 4; ++i)
    reinterpret_cast<float*>(block.data())[i] = static_cast<float>(i);
  const layout_finder knows = [&](std::string_view name, const shape& dims) {
    return name == "backwards" && dims == shape{3} ? format : nullptr;
  };
  const std::string bytes{encode_value(holding(value), memory(), knows).text()};
  variable back;
  decode_value(bytes, memory(), back, knows);
  REQUIRE(back.as_tensor().format() == format);
  CHECK(std::memcmp(back.as_tensor().raw(), value.raw(), 4 * sizeof(float))
        == 0);
  CHECK(refused(bytes)); // by a receiver that does not know it
  auto other = bytes;
  other[1] = static_cast<char>(dtype::int64); // layouts are of float32
  CHECK(caught([&] { decode_value(other, memory(), back, knows); }).code()
        == errc::peer_failure);
  for (std::size_t cut = 1; cut < bytes.size(); ++cut)
    CHECK(caught([&] {
            decode_value(bytes.substr(0, cut), memory(), back, knows);
          }).code()
          == errc::peer_failure);
}

TEST_CASE("a value of which only the shape is kept survives a round trip") {
  for (const bool has_levels : {false, true}) {
    auto like = filled({5, 2}, dtype::int64);
    if (has_levels)
      like.set_levels(make_lod({{0, 2, 5}}, 5));
    const auto bytes = encoded(holding(shape_only(like)));
    CHECK(bytes.size() < 80);
    variable back;
    decode_value(bytes, memory(), back);
    REQUIRE(back.is_tensor());
    CHECK(is_shape_only(back.as_tensor()));
    CHECK(back.as_tensor().dims() == shape{5, 2});
    CHECK(back.as_tensor().type() == dtype::int64);
    CHECK((back.as_tensor().levels() != nullptr) == has_levels);
    CHECK(refused(bytes + "x"));
    for (std::size_t cut = 1; cut < bytes.size(); ++cut)
      CHECK(refused(bytes.substr(0, cut)));
  }
}

TEST_CASE("a slice of a tensor is encoded without the rest") {
  const auto whole = filled({6, 2}, dtype::int32);
  const auto part = whole.rows(2, 3);
  variable back;
  decode_value(encoded(holding(part)), memory(), back);
  CHECK(same(back.as_tensor(), part));
}

TEST_CASE("a value in a library's layout is decoded to plain layout") {
  auto block = memory().allocate(4 * sizeof(float));
  const tensor value{
    {3}, dtype::float32, block, std::make_shared<backwards>(3)};
  for (int i = 0; i < 4; ++i)
    reinterpret_cast<float*>(block.data())[i] = static_cast<float>(i);
  variable back;
  decode_value(encoded(holding(value)), memory(), back);
  REQUIRE(back.is_tensor());
  CHECK(back.as_tensor().is_plain());
  const auto got = back.as_tensor().values<float>();
  CHECK(std::vector<float>(got.begin(), got.end())
        == std::vector<float>{3, 2, 1});
}

TEST_CASE("encoding an array of tensors is refused") {
  variable value;
  value.set(tensor_array{filled({2}, dtype::float32)});
  CHECK(caught([&] { encoded(value); }).code() == errc::invalid_argument);
}

TEST_CASE("an empty value is encoded as no bytes and empties the target") {
  CHECK(encoded({}).empty());
  CHECK(encoded(holding(tensor{})).empty());
  auto target = holding(filled({2}, dtype::int32));
  decode_value({}, memory(), target);
  CHECK_FALSE(target.has_value());
}

TEST_CASE(
  "a value cut at any byte is refused and leaves the target unchanged") {
  for (auto& bytes : {encoded(holding(filled({2, 3}, dtype::float32))),
                      encoded(rows_value())})
    for (std::size_t n = 1; n < bytes.size(); ++n) {
      CAPTURE(n);
      CHECK(refused(std::string_view(bytes).substr(0, n)));
    }
}

TEST_CASE("extra bytes after a value are refused") {
  auto bytes = encoded(holding(filled({2}, dtype::float32))) + "x";
  CHECK(refused(bytes));
  CHECK(refused(encoded(rows_value()) + std::string(8, '\0')));
}

TEST_CASE("unknown kinds, dtypes and ranks are refused") {
  auto bytes = encoded(rows_value());
  for (int kind : {0, 4, 255}) {
    bytes[0] = static_cast<char>(kind);
    CHECK(refused(bytes));
  }
  bytes = encoded(holding(filled({2}, dtype::float32)));
  auto other = bytes;
  other[1] = 77;
  CHECK(refused(other));
  other = bytes;
  other[2] = 9;
  CHECK(refused(other));
  other = bytes;
  other[11] = 4; // a layout of which the elements are the name
  CHECK(refused(other));
}

TEST_CASE("negative and overflowing dimensions are refused") {
  // 2^61 elements of 8 bytes are 2^64 bytes, which is 0 in 64 bits.
  std::vector<std::int64_t> dims(6, 1024);
  dims.push_back(2);
  CHECK(refused(dense_header(dtype::float64, dims) + std::string(4096, 'x')));
  dims.push_back(1024);
  CHECK(refused(dense_header(dtype::float64, dims) + std::string(4096, 'x')));
  CHECK(refused(dense_header(dtype::float32, {-1}) + std::string(16, 'x')));
  CHECK(refused(dense_header(dtype::float32, {0, INT64_MAX, INT64_MAX})));
}

TEST_CASE("rows that do not fit their values or their height are refused") {
  auto encoded_rows = [](std::vector<std::int64_t> rows, std::int64_t height,
                         const shape& dims) {
    variable v;
    v.set(selected_rows{std::move(rows), height, filled(dims, dtype::float32)});
    return encoded(v);
  };
  CHECK_FALSE(refused(encoded_rows({1, 2}, 3, {2, 2})));
  CHECK(refused(encoded_rows({1, 2}, 3, {3, 2})));
  CHECK(refused(encoded_rows({1, 3}, 3, {2, 2})));
  CHECK(refused(encoded_rows({-1, 2}, 3, {2, 2})));
  CHECK(refused(encoded_rows({}, -3, {0, 2})));
  CHECK(refused(encoded_rows({0}, 3, {})));
}

TEST_CASE("random bytes are either refused or decoded to a value") {
  splitmix64 draw{4};
  const auto good = encoded(rows_value());
  for (int round = 0; round < 20000; ++round) {
    auto bytes = round % 2 ? good : std::string(draw.below(80) + 1, '\0');
    for (std::uint64_t i = 0; i < 1 + draw.below(4) || round % 2 == 0; ++i) {
      if (round % 2 == 0 && i >= bytes.size())
        break;
      const auto at = round % 2 ? draw.below(bytes.size()) : i;
      bytes[at] = static_cast<char>(draw.below(i < 3 ? 12 : 256));
    }
    variable target;
    try {
      decode_value(bytes, memory(), target);
      CHECK(target.has_value());
    } catch (const error& e) {
      CHECK(e.code() == errc::peer_failure);
    }
  }
}

} // TEST_SUITE("actors.value_codec")
