// SPDX-License-Identifier: Apache-2.0
// A snapshot of a training run: a file of named arrays. The target `npz` tests
// the files as such; here the arrays are whole, but any.

#include "fuzz/fuzz_target.hpp"
#include "fuzz/input_bytes.hpp"

#include <support/files.hpp>
#include <troupe/training/snapshots/snapshot_folder.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace troupe::fuzz {

namespace {

constexpr const char* file = "step-00000001.rank-0-of-1.npz";
constexpr std::size_t most_arrays = 32;

/// A name and what it has, with a byte for each length.
void add_array(input_bytes& in, arena& memory, named_tensors& to) {
  std::string name{in.take(in.byte())};
  const auto type = dtype{std::min<std::uint8_t>(
    in.byte(), static_cast<std::uint8_t>(dtype::boolean))};
  const auto bytes = in.take(in.byte());
  const auto elements = bytes.size() / size_of(type);
  auto value =
    tensor::make(memory, {static_cast<std::int64_t>(elements)}, type);
  if (elements > 0)
    std::memcpy(value.raw(), bytes.data(), value.bytes());
  if (!name.empty())
    to.insert_or_assign(std::move(name), value);
}

void write_arrays(input_bytes& in, const std::filesystem::path& to) {
  arena memory(make_host_memory_source());
  named_tensors arrays;
  for (std::size_t i = 0; i < most_arrays && !in.is_empty(); ++i)
    add_array(in, memory, arrays);
  write_npz(to, arrays);
}

bool same(const named_tensors& one, const named_tensors& other) {
  return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.type() == b.second.type()
           && a.second.dims() == b.second.dims()
           && std::memcmp(a.second.raw(), b.second.raw(), a.second.bytes())
                == 0;
  });
}

void require_same(const snapshot& one, const snapshot& other) {
  const auto text = [](const snapshot& s) {
    return s.identity.program + " " + std::to_string(s.identity.seed) + " "
           + std::to_string(s.identity.batch) + " "
           + std::to_string(s.identity.steps_per_epoch) + " "
           + std::to_string(s.devices.per_rank) + " "
           + std::to_string(s.devices.ranks);
  };
  if (text(one) != text(other) || !same(one.values, other.values)
      || !std::ranges::equal(
        one.of_device, other.of_device, [](const auto& a, const auto& b) {
          return a.first == b.first && same(a.second, b.second);
        }))
    fail("a snapshot changes on its way");
}

} // namespace

// An array is a file of its own within the file.
memory_allowance allowance() {
  return {.per_byte = 1024};
}

void run_target(std::string_view bytes) {
  const test::temporary_folder folder;
  const snapshot_folder all(folder.path(), 0, 1);
  input_bytes in{bytes};
  arena memory(make_host_memory_source());
  write_arrays(in, folder / file);
  const auto read = all.newest(memory, [](const std::string& why) {
    if (why.find('\n') != why.npos)
      fail("an error that is not one line");
  });
  if (!read)
    return;
  auto changed = *read;
  changed.position.steps = 2;
  all.write(changed, 1);
  const auto again = all.newest(memory, [](const std::string& why) {
    fail("what was written is damaged: " + why);
  });
  require_same(changed, *again);
}

} // namespace troupe::fuzz
