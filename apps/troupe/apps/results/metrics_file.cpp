// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/metrics_file.hpp>

#include <troupe/apps/results/output_places.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/files/target_path.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

double rounded(double value, double per_unit) {
  return std::round(value * per_unit) / per_unit;
}

/// Returns 0 or the system's error number.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// A duplicate of an open descriptor that writes to the file of that name; -1
/// if there is none. Opening the file again would truncate it, and the new
/// descriptor's own position would make lines overwrite other output.
int duplicate_of_open(const std::string& path) {
  const int open = descriptor_to(path);
  return open < 0 ? -1 : ::fcntl(open, F_DUPFD_CLOEXEC, 0);
}

/// The first whole lines of a file.
struct kept_lines {
  std::uint64_t lines = 0;
  std::int64_t bytes = 0;
};

/// At most `most` lines; none of what is no regular file.
kept_lines find_lines(const std::string& path, std::uint64_t most) {
  kept_lines found;
  std::error_code ignored;
  if (most == 0 || !std::filesystem::is_regular_file(path, ignored))
    return found;
  std::ifstream in{path, std::ios::binary};
  std::string line;
  for (; found.lines < most && std::getline(in, line) && !in.eof();
       ++found.lines)
    found.bytes += static_cast<std::int64_t>(line.size()) + 1;
  return found;
}

/// Opens a file and removes what it contains after `kept` bytes. A pipe without
/// a reader is refused (ENXIO): to wait for one could take for ever.
int open_at(const std::string& path, std::int64_t kept) {
  const int descriptor = ::open(path.c_str(),
                                O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC
                                  | (kept == 0 ? O_TRUNC : O_APPEND),
                                0666);
  if (descriptor < 0 && errno == ENXIO)
    throw error(errc::io_failure, path + ": is a pipe without a reader");
  if (descriptor < 0)
    fail_io(path, "write", errno);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  if (kept > 0 && ::ftruncate(descriptor, kept) != 0) {
    const int code = errno;
    ::close(descriptor);
    fail_io(path, "write", code);
  }
  return descriptor;
}

} // namespace

std::string to_json_line(const step_metrics& metrics) {
  nlohmann::ordered_json line;
  line["step"] = metrics.step;
  line["loss"] = metrics.loss;
  line["losses"] = nlohmann::ordered_json::array();
  for (double loss : metrics.losses)
    line["losses"].push_back(loss);
  line["ms"] = rounded(metrics.ms, 1000);
  line["samples_per_s"] = rounded(metrics.samples_per_s, 10);
  return line.dump() + "\n";
}

metrics_file::metrics_file(std::string path, std::uint64_t first_step,
                           const std::string& line_before)
  : path_(std::move(path)), descriptor_(duplicate_of_open(path_)),
    shared_(descriptor_ >= 0) {
  if (shared_)
    return;
  const auto kept = find_lines(path_, first_step);
  bytes_ = kept.bytes;
  descriptor_ = open_at(path_, bytes_);
  if (kept.lines + 1 == first_step && !line_before.empty())
    write_line(line_before);
}

metrics_file::~metrics_file() {
  ::close(descriptor_);
}

void metrics_file::write(const step_metrics& metrics) {
  write_line(to_json_line(metrics));
}

void metrics_file::write_line(const std::string& line) {
  if (const int code = write_all(descriptor_, line); code != 0) {
    if (!shared_)
      (void)!::ftruncate(descriptor_, bytes_); // a pipe cannot be truncated
    fail_io(path_, "write", code);
  }
  bytes_ += static_cast<std::int64_t>(line.size());
}

} // namespace troupe::apps
