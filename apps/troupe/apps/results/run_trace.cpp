// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/run_trace.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::apps {

trace_options trace_of(const train_options& options, const rank_part& part) {
  trace_options wanted;
  const auto* named = std::getenv("TROUPE_TRACE");
  std::filesystem::path file =
    options.trace.empty() && named ? named : options.trace;
  if (part.epoch() > 1 && !file.empty())
    file.replace_extension(".epoch-" + std::to_string(part.epoch())
                           + file.extension().string());
  wanted.file = file.string();
  if (!options.trace_level.empty())
    wanted.level = parse_trace_level(options.trace_level);
  wanted.command = "train " + options.network.program;
  return wanted;
}

} // namespace troupe::apps
