// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/dashboard/training_board.hpp>

#include <troupe/base/error.hpp>
#include <troupe/training/learning_rate.hpp>

#include <algorithm>
#include <optional>

namespace troupe::apps {

std::string shown_learning_rate(const graph::program& main,
                                const rank_part& part) {
  const auto rates = learning_rates_of(main);
  if (rates.empty())
    return "";
  const auto is_of_job = part.has_others() || part.is_elastic();
  const auto* rate = main.blocks.front().find_var(rates.front());
  return !is_of_job || (rate && rate->persistable) ? rates.front() : "";
}

training_board::training_board(const dashboard_options& options,
                               const program_bundle& trains,
                               const rank_part& part, progress& shown)
  : command_("train " + trains.name),
    learning_rate_(shown_learning_rate(trains.main, part)),
    board_(make_board(options)) {
  const auto whose = part.has_others()
                       ? "dashboard of rank " + std::to_string(part.rank())
                       : std::string{"dashboard"};
  shown.note(whose + ", to look:       " + board_->view_link());
  shown.note(whose + ", with controls: " + board_->control_link());
}

void add_board_fetches(const graph::program& trains, const rank_part& part,
                       std::vector<std::string>& possible,
                       std::vector<std::string>& wanted) {
  const auto rate = shown_learning_rate(trains, part);
  if (rate.empty())
    return;
  for (auto* names : {&possible, &wanted})
    if (std::ranges::find(*names, rate) == names->end())
      names->push_back(rate);
}

std::unique_ptr<dashboard::board::shown_run>
training_board::show(executor& run, std::uint64_t first_step) {
  first_step_ = first_step;
  return board_->show(run, command_);
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
  board_->tell(
    {metrics_.step - first_step_, metrics_.loss, metrics_.samples_per_s, rate});
}

std::unique_ptr<training_board>
make_training_board(dashboard_options options, const program_bundle& trains,
                    const rank_part& part, progress& shown) {
  if (part.is_first())
    return std::make_unique<training_board>(options, trains, part, shown);
  options.address = at_free_port(options.address);
  try {
    return std::make_unique<training_board>(options, trains, part, shown);
  } catch (const error& failure) {
    shown.note("rank " + std::to_string(part.rank())
               + " has no dashboard: " + failure.message());
    return nullptr;
  }
}

} // namespace troupe::apps
