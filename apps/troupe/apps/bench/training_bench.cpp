// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/training_bench.hpp>

#include <troupe/apps/training/device_choice.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <string>

namespace troupe::apps {

namespace {

std::vector<feed_map> make_batches(const program_bundle& bundle,
                                   std::int64_t batch, std::uint64_t seed,
                                   arena& memory) {
  const auto source = make_synthetic_source(bundle.feeds, batch, seed, memory);
  std::vector<feed_map> batches;
  for (std::uint64_t i = 0; i < source->steps_per_epoch(); ++i)
    batches.push_back(source->batch(0, i));
  return batches;
}

std::int64_t choose_batch(std::int64_t wanted, const program_bundle& bundle) {
  data_options options;
  options.batch = wanted;
  return apps::choose_batch(options, bundle);
}

double finite(const step_result& result) {
  if (!std::isfinite(result.loss))
    throw error(errc::not_finite, "the loss is not finite",
                {.step = result.step});
  return result.loss;
}

/// Mean of the last `count` gaps. Overlapping steps end in bursts, so the time
/// of one step is the mean over as many steps as overlap.
double mean_of_last(const std::vector<double>& gaps, std::size_t count) {
  const auto taken = std::min(count, gaps.size());
  const auto sum =
    std::accumulate(gaps.end() - static_cast<long>(taken), gaps.end(), 0.0);
  return sum / static_cast<double>(taken);
}

} // namespace

training_bench::training_bench(const training_bench_options& options)
  : bundle_(load_program(options.network.program, options.network.loss)),
    batch_(choose_batch(options.batch, bundle_)), in_flight_(options.in_flight),
    host_(std::make_unique<arena>(make_host_memory_source())),
    parameters_(std::make_shared<scope>()) {
  auto wanted = make_executor_options(options.network);
  wanted.loss = require_loss(bundle_);
  refuse_custom_gradient_of_bench(options.network, bundle_);
  wanted.seed = options.seed;
  wanted.steps_in_flight = in_flight_;
  require_ops(bundle_, wanted.devices);
  batches_ = make_batches(bundle_, batch_, options.seed, *host_);
  wanted.lowering.batch = batch_;
  if (is_automatic(options.network))
    choose_cpu_devices(wanted, options.network, bundle_, batches_.front());
  else
    wanted.strategy = strategy_for(options.network, wanted.devices);
  wanted.parameters = parameters_;
  devices_ = wanted.devices.size();
  strategy_ = wanted.strategy;
  run_startup(bundle_.startup, *parameters_, options.seed);
  executor_ = std::make_unique<executor>(bundle_.main, wanted);
}

void training_bench::write_start(const std::filesystem::path& file) const {
  named_tensors arrays;
  for (const auto& [name, var] : bundle_.main.main().vars)
    if (var.is_parameter)
      arrays.emplace(
        "param/" + name,
        parameters_->to_host(parameters_->var(name).as_tensor(), *host_));
  for (std::size_t i = 0; i < batches_.size(); ++i)
    for (const auto& [name, value] : batches_[i])
      arrays.emplace("feed/" + std::to_string(i) + "/" + name, value);
  write_npz(file, arrays);
}

timed_steps training_bench::run(
  std::uint64_t steps,
  const std::function<void(std::uint64_t, double, double)>& ended) {
  timed_steps done;
  done.ms.reserve(steps);
  done.losses.reserve(steps);
  std::deque<step_id> under_way;
  std::vector<double> gaps; // ms between the ends of steps
  step_result result;
  auto last = now_ns();
  for (std::uint64_t i = 0; i < steps || !under_way.empty();) {
    if (i < steps && under_way.size() < in_flight_) {
      under_way.push_back(
        executor_->submit(batches_[next_++ % batches_.size()]));
      ++i;
      continue;
    }
    executor_->wait(under_way.front(), result);
    under_way.pop_front();
    done.losses.push_back(finite(result));
    const auto now = now_ns();
    gaps.push_back(static_cast<double>(now - last) * 1e-6);
    done.ms.push_back(mean_of_last(gaps, in_flight_));
    if (ended)
      ended(done.ms.size(), done.losses.back(), done.ms.back());
    last = now_ns();
  }
  return done;
}

std::size_t training_bench::peak_bytes() const {
  const auto stats = executor_->stats();
  return std::accumulate(stats.peak_bytes.begin(), stats.peak_bytes.end(),
                         std::size_t{0});
}

} // namespace troupe::apps
