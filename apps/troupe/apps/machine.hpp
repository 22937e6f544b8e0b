// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

/// What this machine and this build support.
struct machine_report {
  int cores = 0; ///< number of cores that this process may use
  std::string processor;
  std::vector<std::string> instruction_sets; ///< those that kernels can use
  std::uint64_t memory_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::vector<std::string> devices; ///< kinds that can be used: "cpu"
  std::vector<std::pair<std::string, std::string>> libraries; ///< name, version
  /// How processes can merge gradients: name, and what is known of it.
  std::vector<std::pair<std::string, std::string>> engines;
  std::vector<std::string> advice; ///< one line per problem
};

machine_report examine_machine();

/// Bytes of main memory that this process uses now, and its peak. 0 if the
/// system does not report them.
std::uint64_t resident_bytes();
std::uint64_t peak_resident_bytes();

} // namespace troupe::apps
