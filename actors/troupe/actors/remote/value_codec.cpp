// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/value_codec.hpp>

#include <troupe/base/byte_reader.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <cstring>
#include <type_traits>
#include <vector>

namespace troupe::actors {

namespace {

enum class content : std::uint8_t {
  dense = 1,
  rows = 2,
  sequences = 3,
};

/// Upper limit of the size of a value in bytes.
constexpr std::size_t largest_value = std::size_t{1} << 62;

error malformed(const std::string& how) {
  return byte_reader::malformed("a value", how);
}

/// Counts bytes, and writes them if there is memory for them.
class byte_sink {
public:
  explicit byte_sink(std::byte* memory) : memory_(memory) {}

  void put(const void* bytes, std::size_t count) {
    if (memory_ && count > 0)
      std::memcpy(memory_ + count_, bytes, count);
    count_ += count;
  }
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(&value, sizeof value);
  }
  std::size_t count() const noexcept { return count_; }

private:
  std::byte* memory_;
  std::size_t count_ = 0;
};

/// dtype, rank, extents, length and name of the layout, elements
void put_tensor(byte_sink& out, const tensor& t) {
  out.put(t.type());
  out.put(static_cast<std::uint8_t>(t.dims().rank()));
  for (auto d : t.dims())
    out.put(d);
  const auto layout = t.is_plain() ? std::string{} : t.format()->name();
  out.put(static_cast<std::uint8_t>(layout.size()));
  out.put(layout.data(), layout.size());
  out.put(t.raw(), t.is_plain() ? t.bytes() : t.format()->bytes());
}

void put_levels(byte_sink& out, const lod& levels) {
  out.put(static_cast<std::uint64_t>(levels.size()));
  for (auto& level : levels) {
    out.put(static_cast<std::uint64_t>(level.size()));
    out.put(level.data(), level.size() * sizeof(std::uint64_t));
  }
}

/// The value of a variable, in a layout that can be sent.
struct sent_value {
  tensor dense; ///< or the values of rows
  const selected_rows* rows = nullptr;
};

tensor to_send(const tensor& t, const layout_finder& find) {
  const auto is_known = [&] {
    const auto found = find(t.format()->name(), t.dims());
    return found && found->equals(*t.format()) && t.type() == dtype::float32;
  };
  if (t.is_plain() || is_shape_only(t) || (find && is_known()))
    return t;
  arena host{make_host_memory_source()}; // its blocks outlive it
  return clone(t, host);
}

sent_value to_send(const variable& value, const layout_finder& find) {
  if (value.is_array())
    throw error(errc::invalid_argument,
                "an array of tensors cannot be sent to another process");
  if (value.is_rows())
    return {to_send(value.as_rows().values, find), &value.as_rows()};
  return {value.is_tensor() ? to_send(value.as_tensor(), find) : tensor{}};
}

void put_value(byte_sink& out, const sent_value& value) {
  if (value.rows) {
    out.put(content::rows);
    out.put(value.rows->height);
    out.put(static_cast<std::uint64_t>(value.rows->rows.size()));
    out.put(value.rows->rows.data(),
            value.rows->rows.size() * sizeof(std::int64_t));
    put_tensor(out, value.dense);
  } else if (value.dense || is_shape_only(value.dense)) {
    const auto& levels = value.dense.levels();
    out.put(levels ? content::sequences : content::dense);
    if (levels)
      put_levels(out, *levels);
    put_tensor(out, value.dense);
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

/// A tensor in a layout of a backend, all of which are of float32.
tensor get_laid_out(byte_reader& in, const shape& dims, dtype type,
                    std::string_view name, arena& memory,
                    const layout_finder& find) {
  const auto layout =
    find && type == dtype::float32 ? find(name, dims) : nullptr;
  if (!layout)
    throw malformed("has an unknown layout");
  const auto bytes = in.take(layout->bytes());
  tensor t{dims, type, memory.allocate(bytes.size()), layout};
  std::memcpy(t.raw(), bytes.data(), bytes.size());
  return t;
}

tensor get_tensor(byte_reader& in, arena& memory, const layout_finder& find) {
  const auto type = in.get<dtype>();
  const auto rank = in.get<std::uint8_t>();
  if (type > dtype::boolean || rank > shape::max_rank)
    throw malformed("has an unknown dtype or rank");
  std::vector<std::int64_t> dims(rank);
  for (auto& d : dims)
    d = in.get<std::int64_t>();
  const auto layout = in.take(in.get<std::uint8_t>());
  if (!layout.empty()) {
    bytes_of(dims, size_of(type), largest_value); // checks them
    return layout == shape_only_layout
             ? shape_only(shape{dims}, type)
             : get_laid_out(in, shape{dims}, type, layout, memory, find);
  }
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

encoded_value encode_value(const variable& value, arena& memory,
                           const layout_finder& find) {
  const auto sent = to_send(value, find);
  byte_sink counter{nullptr};
  put_value(counter, sent);
  encoded_value made;
  made.bytes = counter.count();
  if (made.bytes == 0)
    return made;
  made.memory = memory.allocate(made.bytes);
  byte_sink writer{made.memory.data()};
  put_value(writer, sent);
  return made;
}

void decode_value(std::string_view bytes, arena& memory, variable& target,
                  const layout_finder& find) {
  if (bytes.empty()) {
    target.clear();
    return;
  }
  byte_reader in{bytes, "a value"};
  const auto kind = in.get<content>();
  if (kind == content::dense || kind == content::sequences) {
    auto levels = kind == content::sequences ? get_levels(in) : lod{};
    auto t = get_tensor(in, memory, find);
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
  r.values = get_tensor(in, memory, find);
  in.require_end();
  require_consistent(r);
  target.set(std::move(r));
}

} // namespace troupe::actors
