// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>
#include <random>

namespace troupe::bench {

namespace {

void fill(tensor& t, std::int64_t below, std::mt19937_64& draw) {
  std::normal_distribution<float> normal;
  if (t.type() == dtype::float32)
    for (auto& x : t.values<float>())
      x = normal(draw);
  else if (t.type() == dtype::int64)
    for (auto& x : t.values<std::int64_t>())
      x = static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(below));
  else
    throw error(errc::invalid_argument, "feeds are float32 or int64");
}

shape with_batch(const shape& dims, std::int64_t batch) {
  std::vector<std::int64_t> extents(dims.begin(), dims.end());
  std::replace(extents.begin(), extents.end(), std::int64_t{-1}, batch);
  return shape{extents};
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      return line.substr(line.find(':') + 2);
  return "unknown";
}

} // namespace

std::vector<feed_map> random_batches(const graph::model& net,
                                     std::int64_t batch, std::size_t count,
                                     arena& memory) {
  std::mt19937_64 draw{1};
  std::vector<feed_map> batches(count);
  for (auto& feeds : batches)
    for (auto& f : net.feeds) {
      auto value = tensor::make(memory, with_batch(f.dims, batch), f.type);
      fill(value, f.below, draw);
      feeds.emplace(f.name, std::move(value));
    }
  return batches;
}

training::training(const graph::model& net, const training_options& options)
  : steps_in_flight_(options.steps_in_flight) {
  executor_options made;
  made.devices = parse_devices(options.devices);
  made.threads = options.threads;
  made.loss = net.loss;
  made.steps_in_flight = options.steps_in_flight;
  made.strategy = options.strategy;
  made.nodes = options.nodes;
  made.parameters = std::make_shared<scope>();
  run_startup(net.startup, *made.parameters, 1);
  executor_ = std::make_unique<executor>(net.main, made);
}

double training::run(const std::vector<feed_map>& batches, std::size_t steps) {
  std::deque<step_id> under_way;
  const auto start = now_ns();
  for (std::size_t i = 0; i < steps; ++i) {
    if (under_way.size() == steps_in_flight_) {
      read_loss(under_way.front());
      under_way.pop_front();
    }
    under_way.push_back(
      executor_->submit(executor_->own_share(batches[i % batches.size()])));
  }
  for (auto step : under_way)
    read_loss(step);
  return static_cast<double>(now_ns() - start) / 1e6
         / static_cast<double>(steps);
}

void training::read_loss(step_id step) {
  last_loss_ = executor_->wait(step).loss;
  if (!std::isfinite(last_loss_))
    throw error(errc::not_finite, "the loss is not finite", {.step = step});
}

machine this_machine() {
  machine m;
  m.cores = usable_cores();
  m.model = processor_name();
#if defined(__x86_64__)
  m.avx512 = __builtin_cpu_supports("avx512f");
#endif
  std::ifstream("/proc/loadavg") >> m.load;
  return m;
}

double quantile(std::vector<double> values, double p) {
  const auto last = static_cast<double>(values.size() - 1);
  const auto at =
    values.begin() + static_cast<std::ptrdiff_t>(std::lround(p * last));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

} // namespace troupe::bench
