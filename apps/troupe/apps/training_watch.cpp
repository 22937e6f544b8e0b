// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training_watch.hpp>

#include <troupe/base/quoted_name.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::apps {

trace_options trace_of(const train_options& options, const rank_part& part) {
  trace_options wanted;
  const auto* named = std::getenv("TROUPE_TRACE");
  std::filesystem::path file =
    options.trace.empty() && named ? named : options.trace;
  if (part.epoch() > 1)
    file.replace_extension(".epoch-" + std::to_string(part.epoch())
                           + file.extension().string());
  wanted.file = file.string();
  if (!options.trace_level.empty())
    wanted.level = parse_trace_level(options.trace_level);
  wanted.command = "train " + options.network.program;
  return wanted;
}

std::unique_ptr<step_watchdog> watch_steps(const executor& exe,
                                           double seconds) {
  if (seconds <= 0)
    return nullptr;
  return std::make_unique<step_watchdog>(
    exe, std::chrono::milliseconds{static_cast<std::int64_t>(seconds * 1000)},
    [](const std::string& what) {
      std::fprintf(stderr, "%s\n", one_line(what).c_str());
    });
}

} // namespace troupe::apps
