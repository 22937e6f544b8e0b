// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/program_file.hpp>

#include <troupe/base/files/atomic_file.hpp>
#include <troupe/base/files/input_file.hpp>

#include <limits>

namespace troupe::graph {

namespace {

/// The maximum message size of protobuf.
constexpr std::uint64_t max_program_bytes =
  std::numeric_limits<std::int32_t>::max();

} // namespace

program read_program(const std::filesystem::path& path) {
  return parse_program(read_whole_file(path, max_program_bytes), path.string());
}

void write_program(const program& p, const std::filesystem::path& path) {
  auto bytes = serialize_program(p);
  atomic_file file(path);
  file.write(bytes);
  file.commit();
}

} // namespace troupe::graph
