// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/frame.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <utility>

namespace troupe::dashboard {

namespace {

static_assert(std::endian::native == std::endian::little,
              "frames are written as numbers lie in memory");

constexpr std::size_t alignment = 8;

void pad(std::string& bytes, char with) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, with);
}

} // namespace

void frame_writer::put(std::string_view name, std::string_view type,
                       const void* values, std::size_t count,
                       std::size_t bytes) {
  arrays_.push_back({std::string{name}, type, count});
  bytes_.append(static_cast<const char*>(values), bytes);
  pad(bytes_, '\0');
}

void frame_writer::add(std::string_view name,
                       std::span<const std::uint8_t> values) {
  put(name, "u8", values.data(), values.size(), values.size_bytes());
}

void frame_writer::add(std::string_view name,
                       std::span<const std::uint16_t> values) {
  put(name, "u16", values.data(), values.size(), values.size_bytes());
}

void frame_writer::add(std::string_view name,
                       std::span<const std::uint32_t> values) {
  put(name, "u32", values.data(), values.size(), values.size_bytes());
}

void frame_writer::add(std::string_view name, std::span<const double> values) {
  put(name, "f64", values.data(), values.size(), values.size_bytes());
}

std::string frame_writer::finish(nlohmann::json head) const {
  auto list = nlohmann::json::array();
  for (const auto& a : arrays_)
    list.push_back({{"name", a.name}, {"type", a.type}, {"count", a.count}});
  head["arrays"] = std::move(list);
  std::string frame(sizeof(std::uint32_t), '\0');
  // Names come from program files, which can hold any bytes.
  frame += head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  pad(frame, ' ');
  const auto length =
    static_cast<std::uint32_t>(frame.size() - sizeof(std::uint32_t));
  for (std::size_t i = 0; i < sizeof length; ++i)
    frame[i] = static_cast<char>(length >> (8 * i));
  return frame + bytes_;
}

} // namespace troupe::dashboard
