// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/inference/inference_load.hpp>

#include <troupe/apps/usage_error.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/training/data/batch_source.hpp>
#include <troupe/training/data/classifier.hpp>
#include <troupe/training/output_program.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <latch>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

constexpr std::int64_t known_samples = 256;
/// How far answers can differ, as a share of the largest. Batches of different
/// sizes are rounded differently.
float rounding(precision factors) {
  return factors == precision::bfloat16 ? 2e-2f : 1e-3f;
}

std::string chosen_output(const program_bundle& bundle,
                          const std::string& output) {
  if (!output.empty() && !bundle.test.main().find_var(output))
    throw usage_error("--output: the program has no variable "
                      + quoted_name(output));
  if (!output.empty())
    return output;
  if (const auto found = find_classifier(bundle.test))
    return found->logits;
  throw usage_error(bundle.name
                    + " classifies nothing; name a variable with --output");
}

float largest(const tensor& value) {
  float most = 0;
  for (auto v : value.values<float>())
    most = std::max(most, std::abs(v));
  return most;
}

float distance(std::span<const float> a, std::span<const float> b) {
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// One caller: what it asks, and what it has seen.
class caller {
public:
  caller(const inference_load& load, std::size_t number, std::uint64_t requests,
         const known_answers& known, inference_session& session)
    : load_(load), known_(known), session_(session), left_(requests),
      random_(load.seed * 1'000'003 + number) {
    ns_.reserve(requests);
  }

  /// Asks and waits, until nothing is left.
  void ask_and_wait() {
    while (left_ > 0)
      check(session_.predict(next()).get());
  }
  /// Asks, and goes on when it is called with the answer. Calls `done` at the
  /// end.
  void ask(const std::function<void()>& done) {
    if (left_ == 0)
      return done();
    session_.predict(next(), [this, done](const prediction_outcome& outcome) {
      try {
        if (outcome.failure)
          throw *outcome.failure;
        check(outcome.answer);
        ask(done);
      } catch (...) {
        failure_ = std::current_exception();
        done();
      }
    });
  }
  void add_to(inference_figures& figures) const {
    if (failure_)
      std::rethrow_exception(failure_);
    figures.wrong += wrong_;
    figures.requests += ns_.size();
    for (auto ns : ns_)
      figures.latency.add(ns);
  }
  void fails(std::exception_ptr why) { failure_ = std::move(why); }

private:
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_()
                                     % static_cast<std::uint64_t>(limit));
  }

  feed_map next() {
    --left_;
    count_ = 1 + below(load_.most_samples);
    first_ = below(known_.samples() - count_ + 1);
    auto feeds = known_.request(first_, count_);
    start_ = now_ns();
    return feeds;
  }

  void check(const prediction& answer) {
    ns_.push_back(static_cast<double>(now_ns() - start_));
    wrong_ += !known_.is_answer(answer, first_, count_);
  }

  const inference_load& load_;
  const known_answers& known_;
  inference_session& session_;
  std::uint64_t left_;
  std::mt19937_64 random_;
  std::int64_t first_ = 0, count_ = 0;
  std::uint64_t start_ = 0;
  std::vector<double> ns_;
  std::uint64_t wrong_ = 0;
  std::exception_ptr failure_;
};

/// The share of one of the callers.
std::uint64_t share_of(const inference_load& load, std::size_t number) {
  return load.requests / load.callers
         + (number < load.requests % load.callers ? 1 : 0);
}

void run_threads(std::vector<caller>& callers) {
  std::vector<std::jthread> threads;
  for (auto& c : callers)
    threads.emplace_back([&c] {
      try {
        c.ask_and_wait();
      } catch (...) {
        c.fails(std::current_exception());
      }
    });
}

void run_functions(std::vector<caller>& callers) {
  std::latch running{static_cast<std::ptrdiff_t>(callers.size())};
  for (auto& c : callers)
    c.ask([&running] { running.count_down(); });
  running.wait();
}

} // namespace

known_answers::known_answers(const program_bundle& bundle,
                             const std::string& output, std::uint64_t seed,
                             precision factors)
  : output_(chosen_output(bundle, output)) {
  auto values = std::make_shared<scope>();
  run_startup(bundle.startup, *values, seed);
  parameters_ = {values, 0};
  const std::vector<std::string> outputs{output_};
  const auto program = make_output_program(bundle.test, outputs);
  const auto feeds = describe_feeds(program);
  samples_ =
    make_synthetic_source(feeds, known_samples, seed, memory_)->batch(0, 0);
  executor exe{program, {.fetches = outputs, .parameters = values}};
  expected_ = exe.run(samples_, outputs).merged(output_);
  tolerance_ = rounding(factors) * largest(expected_);
  require_distinct();
}

void known_answers::require_distinct() const {
  const auto values = expected_.values<float>();
  const auto width = values.size() / static_cast<std::size_t>(known_samples);
  const auto row = [&](std::int64_t i) {
    return values.subspan(static_cast<std::size_t>(i) * width, width);
  };
  for (std::int64_t i = 0; i < known_samples; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      if (distance(row(i), row(j)) <= 2 * tolerance_)
        throw error(errc::invalid_argument,
                    "two random samples have the same answer, so a reply to "
                    "the wrong caller would not be noticed",
                    {.variable = output_});
}

feed_map known_answers::request(std::int64_t first, std::int64_t count) const {
  feed_map feeds;
  for (auto& [name, value] : samples_)
    feeds.emplace(name, value.samples(first, count));
  return feeds;
}

bool known_answers::is_answer(const prediction& answer, std::int64_t first,
                              std::int64_t count) const {
  const auto expected = expected_.samples(first, count);
  const auto& got = answer.outputs.at(output_);
  return got.dims() == expected.dims()
         && distance(got.values<float>(), expected.values<float>())
              <= tolerance_;
}

void measure(const inference_load& load, const known_answers& known,
             inference_session& session, inference_figures& figures) {
  std::vector<caller> callers;
  callers.reserve(load.callers);
  for (std::size_t i = 0; i < load.callers; ++i)
    callers.emplace_back(load, i, share_of(load, i), known, session);
  const auto start = now_ns();
  load.kind == caller_kind::threads ? run_threads(callers)
                                    : run_functions(callers);
  const auto seconds = static_cast<double>(now_ns() - start) * 1e-9;
  figures.per_second.add(static_cast<double>(load.requests) / seconds);
  for (auto& c : callers)
    c.add_to(figures);
}

} // namespace troupe::apps
