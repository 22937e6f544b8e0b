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
/// The file has one array per variable, with a leading axis of steps. If shapes
/// differ between steps (a smaller last batch), or have no room for another
/// axis, it has one array per step, named `VAR/STEP`.
class fetch_file {
public:
  /// @param persistable variables that have the same value on every device:
  /// the value of the first device is written. Values of other variables are
  /// joined along axis 0.
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
