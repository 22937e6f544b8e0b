// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/run_trace.hpp>

#include <troupe/base/fingerprint.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace troupe::apps {

namespace {

/// In an elastic job, each epoch is a run. The name of a job is that of a
/// folder which others can see; its hash tells less.
std::string job_of(const rank_part& part) {
  const auto name = part.job();
  if (name.empty())
    return "";
  fingerprint number;
  number.add(name);
  number.add("epoch " + std::to_string(part.epoch()));
  return number.text();
}

} // namespace

trace_options trace_from_environment(std::string command) {
  trace_options wanted;
  if (const auto* file = std::getenv("TROUPE_TRACE"))
    wanted.file = file;
  wanted.command = std::move(command);
  return wanted;
}

trace_options trace_of(const train_options& options, const rank_part& part) {
  auto wanted = trace_from_environment("train " + options.network.program);
  std::filesystem::path file =
    options.trace.empty() ? wanted.file : options.trace;
  if (part.epoch() > 1 && !file.empty())
    file.replace_extension(".epoch-" + std::to_string(part.epoch())
                           + file.extension().string());
  wanted.file = file.string();
  if (!options.trace_level.empty())
    wanted.level = parse_trace_level(options.trace_level);
  wanted.job = job_of(part);
  return wanted;
}

} // namespace troupe::apps
