// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/node_options.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::pair<group_engine, std::string_view>, 4> engine_names{
  {
    {group_engine::automatic, "auto"},
    {group_engine::shared_memory, "shm"},
    {group_engine::gloo, "gloo"},
    {group_engine::mpi, "mpi"},
  }};

} // namespace

std::string_view to_string(group_engine engine) noexcept {
  return engine_names[static_cast<std::size_t>(engine)].second;
}

group_engine parse_group_engine(std::string_view text) {
  for (auto& [engine, name] : engine_names)
    if (name == text)
      return engine;
  throw error(errc::invalid_argument,
              "there is no engine " + quoted_name(text)
                + "; engines are auto, shm, gloo and mpi");
}

std::size_t node_options::processes() const {
  std::size_t last = process;
  for (auto p : process_of_device)
    last = std::max(last, p);
  return process_of_device.empty() ? 1 : last + 1;
}

} // namespace troupe
