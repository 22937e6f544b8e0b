// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/training/training_text.hpp>

#include <troupe/apps/printed.hpp>
#include <troupe/apps/training/device_choice.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace troupe::apps {

namespace {

using ull = unsigned long long; // for printf

} // namespace

void describe_graph(const executor& exe, const train_options& options,
                    graph::merge_strategy strategy, const rank_part& part,
                    progress& shown) {
  const executor_stats stats = exe.stats();
  const auto count = exe.graph().devices.size();
  auto on = describe_devices(options.network, count / part.size());
  if (part.has_others())
    on += " in each of " + std::to_string(part.size()) + " ranks";
  if (count > 1)
    on += ", " + std::string(graph::to_string(strategy));
  shown.note(printed("%s on %s: %zu op actors, %zu variable actors, %zu stream "
                     "actors, %zu messages per step",
                     options.network.program.c_str(), on.c_str(),
                     stats.op_actors, stats.variable_actors,
                     stats.stream_actors, stats.messages_per_step));
}

void tell_of_start(const train_options& options, progress& shown) {
  if (!options.params.empty())
    shown.note("parameters from " + options.params
               + "; steps and epochs of this run count from the first");
}

void print_summary(const training_report& report, const executor_stats& stats,
                   bool json) {
  if (!json) {
    std::fprintf(stderr, "%s\n",
                 printed("trained %llu step%s in %.2f s: %.0f samples/s, %llu "
                         "messages",
                         ull{report.steps}, report.steps == 1 ? "" : "s",
                         report.seconds, report.samples_per_s(),
                         ull{stats.messages})
                   .c_str());
    return;
  }
  nlohmann::ordered_json result;
  result["steps"] = report.steps;
  if (report.steps > 0) // a snapshot may have had all steps
    result["loss"] = report.history.steps.back();
  result["seconds"] = report.seconds;
  result["samples_per_s"] = report.samples_per_s();
  result["op_actors"] = stats.op_actors;
  result["variable_actors"] = stats.variable_actors;
  result["messages"] = stats.messages;
  if (stats.captured_steps > 0)
    result["captured_steps"] = stats.captured_steps;
  std::printf("%s\n", result.dump().c_str());
}

int tell_stop(std::uint64_t steps, std::uint64_t of_steps,
              const rank_part& part) {
  if (part.is_first())
    std::fprintf(stderr, "troupe: stopped after step %llu of %llu\n",
                 ull{steps}, ull{of_steps});
  return 1;
}

void warn_of_loss(const training_report& report, progress& shown) {
  const auto& losses = report.history.steps;
  const auto is_lost = [](double loss) { return !std::isfinite(loss); };
  const auto lost = std::ranges::find_if(losses, is_lost);
  if (lost == losses.end())
    return;
  const auto later = std::count_if(lost + 1, losses.end(), is_lost);
  shown.note(
    printed("warning: the loss of step %lld is not finite",
            static_cast<long long>(report.first_step) + (lost - losses.begin()))
    + (later > 0 ? printed(", the first of %lld such steps",
                           static_cast<long long>(later) + 1)
                 : "")
    + "; --check-nan names the op that begins it");
}

void print_held_out(const hits& found, bool json) {
  if (!json) {
    std::printf("held_out_accuracy=%.4f correct=%lld total=%lld\n",
                found.accuracy(), static_cast<long long>(found.correct),
                static_cast<long long>(found.total));
    return;
  }
  nlohmann::ordered_json result;
  result["held_out_accuracy"] = found.accuracy();
  result["correct"] = found.correct;
  result["total"] = found.total;
  std::printf("%s\n", result.dump().c_str());
}

} // namespace troupe::apps
