// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/dashboard/training_board.hpp>

#include <algorithm>
#include <optional>

namespace troupe::apps {

std::string find_learning_rate(const graph::program& program) {
  for (const auto& op : program.main().ops)
    if (const auto& rate = op.input("LearningRate"); !rate.empty())
      return rate.front();
  return {};
}

training_board::training_board(const dashboard_options& options,
                               const program_bundle& trains,
                               const rank_part& part, progress& shown)
  : command_("train " + trains.name),
    learning_rate_(find_learning_rate(trains.main)),
    board_(board_options_of(options)) {
  if (part.has_others() || part.is_elastic())
    learning_rate_.clear(); // all ranks must fetch the same
  shown.note("dashboard, to look:       " + board_.view_link());
  shown.note("dashboard, with controls: " + board_.control_link());
}

void training_board::add_fetches(std::vector<std::string>& possible,
                                 std::vector<std::string>& wanted) const {
  if (learning_rate_.empty())
    return;
  for (auto* names : {&possible, &wanted})
    if (std::ranges::find(*names, learning_rate_) == names->end())
      names->push_back(learning_rate_);
}

std::unique_ptr<dashboard::board::shown_run>
training_board::show(executor& run, std::uint64_t first_step) {
  first_step_ = first_step;
  return board_.show(run, command_);
}

void training_board::remember(const step_metrics& metrics) {
  metrics_ = metrics;
  metrics_.losses = {}; // not ours
}

void training_board::tell(const step_result& result) {
  std::optional<double> rate;
  if (const auto found = result.fetched.find(learning_rate_);
      found != result.fetched.end())
    for (const auto& value : found->second)
      if (value && value.type() == dtype::float32 && value.numel() > 0) {
        rate = value.data<float>()[0];
        break;
      }
  board_.tell(
    {metrics_.step - first_step_, metrics_.loss, metrics_.samples_per_s, rate});
}

} // namespace troupe::apps
