// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace troupe::apps {

/// What one step gave, as the metrics file tells it.
struct step_metrics {
  std::uint64_t step = 0;
  double loss = 0;                     ///< sample-weighted mean over devices
  std::span<const double> losses = {}; ///< per device
  double ms = 0; ///< since the step before ended, or its own start
  double samples_per_s = 0;
};

/// One line of JSON: {"step":0,"loss":2.1,"losses":[2.1,2.1],"ms":1.93,
/// "samples_per_s":8300}. A loss that is not finite becomes null.
std::string to_json_line(const step_metrics& metrics);

/// A file with exactly one line per step, each on disk when `write` returns,
/// so that others can follow it.
class metrics_file {
public:
  /// Replaces a file of that name. Throws error(io_failure).
  explicit metrics_file(std::string path);

  /// Throws error(io_failure) when the disk is full.
  void write(const step_metrics& metrics);

private:
  struct closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, closer> file_;
};

} // namespace troupe::apps
