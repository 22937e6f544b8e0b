// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/metrics_file.hpp>

#include <troupe/base/error.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstring>

namespace troupe::apps {

namespace {

double rounded(double value, double per_unit) {
  return std::round(value * per_unit) / per_unit;
}

[[noreturn]] void fail(const std::string& path, const char* action) {
  throw error(errc::io_failure,
              path + ": cannot " + action + ": " + std::strerror(errno));
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

metrics_file::metrics_file(std::string path)
  : path_(std::move(path)), file_(std::fopen(path_.c_str(), "w")) {
  if (!file_)
    fail(path_, "write");
}

void metrics_file::write(const step_metrics& metrics) {
  const std::string line = to_json_line(metrics);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()
      || std::fflush(file_.get()) != 0)
    fail(path_, "write");
}

} // namespace troupe::apps
