// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/value_codec.hpp>

#include <troupe/base/byte_reader.hpp>
#include <troupe/base/error.hpp>

#include <cstring>

namespace troupe::actors {

namespace {

enum class content : std::uint8_t { dense = 1, rows = 2, sequences = 3 };

/// Upper limit of the size of a value in bytes.
constexpr std::size_t largest_value = std::size_t{1} << 62;

error malformed(const std::string& how) {
  return byte_reader::malformed("a value", how);
}

void put_tensor(std::string& out, const tensor& t) {
  if (!t.is_plain()) {
    arena host{make_host_memory_source()}; // its blocks outlive it
    put_tensor(out, clone(t, host));
    return;
  }
  put_bytes(out, t.type());
  put_bytes(out, static_cast<std::uint8_t>(t.dims().rank()));
  for (auto d : t.dims())
    put_bytes(out, d);
  out.append(reinterpret_cast<const char*>(t.raw()), t.bytes());
}

void put_levels(std::string& out, const lod& levels) {
  put_bytes(out, static_cast<std::uint64_t>(levels.size()));
  for (auto& level : levels) {
    put_bytes(out, static_cast<std::uint64_t>(level.size()));
    out.append(reinterpret_cast<const char*>(level.data()),
               level.size() * sizeof(std::uint64_t));
  }
}

/// Size in bytes of a tensor with these untrusted extents.
std::size_t bytes_of(const std::vector<std::int64_t>& dims, std::size_t element,
                     std::size_t at_most) {
  // Extents of 0 are left out: the product of the others must still be in
  // range.
  std::size_t bytes = element;
  auto empty = false;
  for (auto d : dims) {
    empty |= d == 0;
    if (d < 0 || (d > 0 && bytes > largest_value / static_cast<std::size_t>(d)))
      throw malformed("has impossible extents");
    bytes *= d > 0 ? static_cast<std::size_t>(d) : 1;
  }
  if (!empty && bytes > at_most)
    throw malformed("is cut short: " + std::to_string(bytes)
                    + " bytes expected, " + std::to_string(at_most) + " left");
  return empty ? 0 : bytes;
}

/// Kernels use rows as indices without checking them.
void require_consistent(const selected_rows& r) {
  auto& dims = r.values.dims();
  auto fits = r.height >= 0 && dims.rank() > 0
              && dims[0] == static_cast<std::int64_t>(r.rows.size());
  for (auto row : r.rows)
    fits &= row >= 0 && row < r.height;
  if (!fits)
    throw malformed("has rows that do not fit");
}

tensor make_tensor(std::span<const std::int64_t> dims, dtype type,
                   arena& memory) {
  try {
    return tensor::make(memory, shape{dims}, type);
  } catch (const error& e) {
    if (e.code() != errc::invalid_argument)
      throw;
    throw malformed(std::string{"is refused: "} + e.what());
  }
}

tensor get_tensor(byte_reader& in, arena& memory) {
  const auto type = in.get<dtype>();
  const auto rank = in.get<std::uint8_t>();
  if (type > dtype::boolean || rank > shape::max_rank)
    throw malformed("has an unknown dtype or rank");
  std::vector<std::int64_t> dims(rank);
  for (auto& d : dims)
    d = in.get<std::int64_t>();
  const auto bytes = in.take(bytes_of(dims, size_of(type), in.left()));
  auto t = make_tensor(dims, type, memory);
  std::memcpy(t.raw(), bytes.data(), bytes.size());
  return t;
}

lod get_levels(byte_reader& in) {
  lod levels;
  for (auto count = in.get<std::uint64_t>(); count > 0; --count) {
    const auto size = in.get<std::uint64_t>();
    if (size > in.left() / sizeof(std::uint64_t))
      throw malformed("has impossible levels");
    const auto bytes = in.take(size * sizeof(std::uint64_t));
    auto& level = levels.emplace_back(size);
    if (size > 0)
      std::memcpy(level.data(), bytes.data(), bytes.size());
  }
  return levels;
}

void set_levels(tensor& value, lod levels) {
  const auto rows = value.dims().rank() == 0 ? 1 : value.dims()[0];
  try {
    value.set_levels(make_lod(std::move(levels), rows));
  } catch (const error& e) {
    throw malformed(std::string{"is refused: "} + e.what());
  }
}

} // namespace

std::string encode_value(const variable& value) {
  std::string out;
  if (value.is_tensor() && value.as_tensor()) {
    const auto& levels = value.as_tensor().levels();
    put_bytes(out, levels ? content::sequences : content::dense);
    if (levels)
      put_levels(out, *levels);
    put_tensor(out, value.as_tensor());
  } else if (value.is_rows()) {
    const auto& r = value.as_rows();
    put_bytes(out, content::rows);
    put_bytes(out, r.height);
    put_bytes(out, static_cast<std::uint64_t>(r.rows.size()));
    out.append(reinterpret_cast<const char*>(r.rows.data()),
               r.rows.size() * sizeof(std::int64_t));
    put_tensor(out, r.values);
  } else if (value.is_array()) {
    throw error(errc::invalid_argument,
                "an array of tensors cannot be sent to another process");
  }
  return out;
}

void decode_value(std::string_view bytes, arena& memory, variable& target) {
  if (bytes.empty()) {
    target.clear();
    return;
  }
  byte_reader in{bytes, "a value"};
  const auto kind = in.get<content>();
  if (kind == content::dense || kind == content::sequences) {
    auto levels = kind == content::sequences ? get_levels(in) : lod{};
    auto t = get_tensor(in, memory);
    in.require_end();
    set_levels(t, std::move(levels));
    target.set(std::move(t));
    return;
  }
  if (kind != content::rows)
    throw malformed("is of an unknown kind");
  selected_rows r;
  r.height = in.get<std::int64_t>();
  const auto count = in.get<std::uint64_t>();
  if (count > in.left() / sizeof(std::int64_t))
    throw malformed("has impossible extents");
  const auto rows = in.take(count * sizeof(std::int64_t));
  r.rows.resize(count);
  if (count > 0)
    std::memcpy(r.rows.data(), rows.data(), rows.size());
  r.values = get_tensor(in, memory);
  in.require_end();
  require_consistent(r);
  target.set(std::move(r));
}

} // namespace troupe::actors
