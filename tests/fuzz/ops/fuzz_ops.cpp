// SPDX-License-Identifier: Apache-2.0
// Runs the ops of tests/data/paddle_ops through the executor with attributes,
// slots and values that no program of Paddle has. A run may end with a result
// or with an error of one line; all else, a hang included, is a finding.
//
// usage: fuzz_ops COUNT SEED FOLDER [FIRST [-v]]
// Mutation i of a seed is the same however many run; -v names each before it
// runs, and says why it was refused.

#include "fuzz/ops/bounded_device.hpp"
#include "fuzz/ops/mutation.hpp"

#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/base/error.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace {

using namespace troupe;

constexpr std::size_t device_bytes = std::size_t{8} << 20;

/// The mutation under way, for messages.
struct place {
  std::uint64_t seed = 0;
  std::uint64_t index = 0;
  std::string name;
};

[[noreturn]] void finding(const place& at, const char* what) {
  std::fprintf(stderr, "finding: %s in mutation %llu of seed %llu (%s)\n", what,
               static_cast<unsigned long long>(at.index),
               static_cast<unsigned long long>(at.seed), at.name.c_str());
  std::abort();
}

/// Cancels a run that takes long, which is a loop whose condition stays true,
/// and ends the process if that does not help.
class watchdog {
public:
  watchdog(executor& watched, const place& at)
    : thread_([this, &watched, &at] { watch(watched, at); }) {}

  ~watchdog() {
    {
      std::lock_guard guard{mutex_};
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

private:
  bool ends_within(std::chrono::milliseconds time) {
    std::unique_lock held{mutex_};
    return changed_.wait_for(held, time, [this] { return done_; });
  }

  void watch(executor& watched, const place& at) {
    using namespace std::chrono_literals;
    if (ends_within(1s))
      return;
    watched.cancel();
    if (!ends_within(60s))
      finding(at, "a hang");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

void run_case(const fuzz::op_case_file& c, caf::actor_system& system,
              const place& at) {
  arena memory{make_host_memory_source()};
  auto on = fuzz::make_bounded_device(device_bytes);
  executor_options options;
  options.system = &system;
  options.scale = graph::gradient_scale::custom; // most cases have no loss
  options.hooks.device_instances = {on};
  options.parameters = std::make_shared<scope>();
  set_inputs(c, *options.parameters, on->memory());
  executor exe{c.program, options};
  const watchdog watched{exe, at};
  exe.run({});
}

/// Why the case was refused; empty if it was not.
std::string run_guarded(const fuzz::op_case_file& c, caf::actor_system& system,
                        const place& at) {
  try {
    run_case(c, system, at);
    return {};
  } catch (const error& e) {
    if (e.message().empty() || e.message().find('\n') != std::string::npos)
      finding(at, "an error that is not one line");
    return e.what();
  } catch (const std::exception& e) {
    finding(at, e.what());
  }
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 10);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s COUNT SEED FOLDER [FIRST [-v]]\n", argv[0]);
    return 2;
  }
  const auto cases = fuzz::read_op_cases(argv[3]);
  if (cases.empty())
    return 2;
  const auto first = argc > 4 ? number(argv[4]) : 0;
  const bool verbose = argc > 5;
  caf::actor_system_config config;
  const auto owned = make_actor_system(config, 1);
  auto& system = *owned;
  std::uint64_t refused = 0;
  place at{number(argv[2]), first, ""};
  for (const auto end = first + number(argv[1]); at.index < end; ++at.index) {
    std::seed_seq seeds{at.seed, at.index};
    std::mt19937_64 random{seeds};
    auto c = cases[random() % cases.size()];
    at.name = c.name;
    if (verbose)
      std::fprintf(stderr, "%llu %s\n",
                   static_cast<unsigned long long>(at.index), at.name.c_str());
    mutate(c, random);
    const auto why = run_guarded(c, system, at);
    refused += !why.empty();
    if (verbose && !why.empty())
      std::fprintf(stderr, "  %s\n", why.c_str());
  }
  std::printf("%zu cases, %s mutations, %llu refused\n", cases.size(), argv[1],
              static_cast<unsigned long long>(refused));
}
