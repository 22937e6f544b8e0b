// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/value_codec.hpp>

#include <troupe/base/error.hpp>

#include <cstring>

namespace troupe::actors {

namespace {

enum class content : std::uint8_t { dense = 1, rows = 2 };

template <class T> void put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_tensor(std::string& out, const tensor& t) {
  put(out, t.type());
  put(out, static_cast<std::uint8_t>(t.dims().rank()));
  for (auto d : t.dims())
    put(out, d);
  out.append(reinterpret_cast<const char*>(t.raw()), t.bytes());
}

/// Takes values off the front of the bytes, never beyond their end.
class reader {
public:
  explicit reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::size_t count) {
    if (count > rest_.size())
      throw error(errc::peer_failure,
                  "a value from another process is cut short: "
                    + std::to_string(count) + " bytes expected, "
                    + std::to_string(rest_.size()) + " left");
    auto part = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return part;
  }

  template <class T> T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::size_t left() const noexcept { return rest_.size(); }

private:
  std::string_view rest_;
};

tensor get_tensor(reader& in, arena& memory) {
  const auto type = in.get<dtype>();
  const auto rank = in.get<std::uint8_t>();
  if (type > dtype::boolean || rank > shape::max_rank)
    throw error(errc::peer_failure,
                "a value from another process has an unknown dtype or rank");
  std::vector<std::int64_t> dims(rank);
  for (auto& d : dims) {
    d = in.get<std::int64_t>();
    if (d < 0 || static_cast<std::uint64_t>(d) > in.left())
      if (d != 0)
        throw error(errc::peer_failure,
                    "a value from another process has impossible extents");
  }
  const shape extents{std::span<const std::int64_t>(dims)};
  const auto bytes = in.take(static_cast<std::size_t>(extents.numel()) * size_of(type));
  auto t = tensor::make(memory, extents, type);
  std::memcpy(t.raw(), bytes.data(), bytes.size());
  return t;
}

} // namespace

std::string encode_value(const variable& value) {
  std::string out;
  if (value.is_tensor()) {
    put(out, content::dense);
    put_tensor(out, value.as_tensor());
  } else if (value.is_rows()) {
    const auto& r = value.as_rows();
    put(out, content::rows);
    put(out, r.height);
    put(out, static_cast<std::uint64_t>(r.rows.size()));
    out.append(reinterpret_cast<const char*>(r.rows.data()),
               r.rows.size() * sizeof(std::int64_t));
    put_tensor(out, r.values);
  }
  return out;
}

void decode_value(std::string_view bytes, arena& memory, variable& target) {
  if (bytes.empty()) {
    target.clear();
    return;
  }
  reader in{bytes};
  if (in.get<content>() == content::dense) {
    target.set(get_tensor(in, memory));
    return;
  }
  selected_rows r;
  r.height = in.get<std::int64_t>();
  const auto count = in.get<std::uint64_t>();
  if (count > in.left() / sizeof(std::int64_t))
    throw error(errc::peer_failure,
                "a value from another process has impossible extents");
  const auto rows = in.take(count * sizeof(std::int64_t));
  r.rows.resize(count);
  std::memcpy(r.rows.data(), rows.data(), rows.size());
  r.values = get_tensor(in, memory);
  target.set(std::move(r));
}

} // namespace troupe::actors
