// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/results/run_outputs.hpp>

#include <troupe/apps/results/output_places.hpp>
#include <troupe/base/error.hpp>
#include <troupe/graph/paddle/program_folder.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <array>
#include <span>

namespace troupe::apps {

namespace {

/// Refuses a variable that the file cannot hold before the training; otherwise
/// the error would come after the last step.
void require_storable(const program_bundle& bundle, const std::string& name,
                      const std::string& file) {
  const auto* var = bundle.main.main().find_var(name);
  try {
    require_npz_array(name, var ? var->type : dtype::float32);
  } catch (const error& failure) {
    throw error(failure.code(), file + ": " + failure.message(),
                {.variable = name});
  }
}

} // namespace

std::vector<std::string> persistable(const program_bundle& bundle,
                                     const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names)
    if (const auto* var = bundle.main.main().find_var(name);
        var && var->persistable)
      found.push_back(name);
  return found;
}

train_options without_files(train_options options) {
  options.save.clear();
  options.metrics.clear();
  options.loss_curve.clear();
  options.fetch_out.clear();
  options.profile = false;
  return options;
}

void require_output_places(const train_options& options) {
  const std::array<output_place, 4> outputs{
    {{"--metrics", options.metrics, true},
     {"--loss-curve", options.loss_curve},
     {"--fetch-out", options.fetch_out},
     {"--trace", options.trace}}};
  const std::array<std::string, 4> read{options.network.program,
                                        options.data.feeds, options.data.data,
                                        options.params};
  require_places_of_their_own(outputs, read, options.save);
  // A program may be saved to the folder that it was read from.
  const std::array<output_place, 1> saved{{{"--save", options.save}}};
  require_places_of_their_own(saved, std::span{read}.subspan(1, 2), "");
}

run_outputs::run_outputs(const train_options& options,
                         const program_bundle& bundle, std::uint64_t first_step,
                         const std::string& line_before) {
  if (!options.save.empty())
    graph::require_program_folder_place(options.save);
  if (!options.metrics.empty())
    metrics_.emplace(options.metrics, first_step, line_before);
  if (!options.loss_curve.empty())
    curve_.emplace(options.loss_curve);
  if (options.fetch_out.empty())
    return;
  const auto names = split_names(options.fetch);
  for (const auto& name : names)
    require_storable(bundle, name, options.fetch_out);
  fetched_.emplace(options.fetch_out, names, persistable(bundle, names));
  atomic_file{options.fetch_out}; // made and removed, to check the path
}

void run_outputs::add(const step_metrics& metrics, progress& shown) {
  if (!metrics_ || lost_)
    return;
  try {
    metrics_->write(metrics);
  } catch (const error& failure) {
    lost_ = failure.message() + "; lines from step "
            + std::to_string(metrics.step) + " on are missing";
    shown.note("warning: " + *lost_);
  }
}

void run_outputs::add_line(const std::string& line) {
  if (metrics_ && !lost_)
    metrics_->write_line(line);
}

void run_outputs::require_metrics() const {
  if (lost_)
    throw error(errc::io_failure, *lost_);
}

void run_outputs::add(const step_result& result) {
  if (fetched_)
    fetched_->add(result);
}

void run_outputs::finish(const program_bundle& bundle,
                         const loss_history& history,
                         const train_options& options, arena& memory) {
  if (curve_) {
    curve_->write(
      draw_loss_curve(history, bundle.name + " on " + options.network.devices));
    curve_->commit();
  }
  if (fetched_)
    fetched_->write(memory);
}

} // namespace troupe::apps
