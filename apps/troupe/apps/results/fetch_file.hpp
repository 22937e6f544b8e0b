// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::apps {

/// Collects fetched variables of all steps and writes them as one `.npz` file.
///
/// An array per variable with a leading axis of steps; where steps differ in
/// shape (a smaller last batch), an array per step named `VAR/STEP`.
class fetch_file {
public:
  /// @param persistable variables of which every device has the same value;
  /// the first device's is written, others are joined along axis 0.
  fetch_file(std::filesystem::path file, std::vector<std::string> variables,
             std::vector<std::string> persistable);

  void add(const step_result& result);
  /// Writes the file. Throws error(io_failure).
  void write(arena& memory) const;

private:
  std::filesystem::path file_;
  std::vector<std::string> variables_;
  std::vector<std::string> persistable_;
  std::map<std::string, std::vector<tensor>> values_; ///< one per step
};

} // namespace troupe::apps
