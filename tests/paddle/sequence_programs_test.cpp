// SPDX-License-Identifier: Apache-2.0
// Programs of real Paddle with sequences, recurrent nets, branches and loops
// (make_programs.py), trained here: the losses are those of Paddle's executor,
// on one device and on two, by actors and by the plain executor.

#include <troupe/actors/plain_executor.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

TEST_SUITE("paddle.sequence_programs") {

namespace {

constexpr double limit = 2e-5;

/// One folder of tests/data/paddle_sequences.
class trained_program {
public:
  explicit trained_program(const std::string& name)
    : folder_(std::filesystem::path{TROUPE_TEST_DATA} / "paddle_sequences"
              / name),
      main_(graph::read_program(folder_ / "main.pdmodel")),
      feeds_(
        make_npz_source(folder_ / "feeds.npz", describe_feeds(main_), memory_)),
      losses_(read_npz(folder_ / "losses.npz", memory_).at("loss")) {}

  const graph::program& main() const { return main_; }

  std::shared_ptr<scope> parameters() {
    auto values = std::make_shared<scope>();
    load_parameters(main_, folder_ / "params0.pdiparams", *values, memory_);
    return values;
  }

  template <class Executor>
  void check(Executor& exe) {
    for (std::uint64_t i = 0; i < feeds_->steps_per_epoch(); ++i) {
      CAPTURE(i);
      const double wanted = losses_.values<double>()[i];
      const double loss = exe.run(feeds_->batch(0, i)).loss;
      CHECK(std::abs(loss - wanted) <= limit * wanted);
    }
  }

  void check_overlapping(executor& exe) {
    std::vector<step_id> steps;
    for (std::uint64_t i = 0; i < feeds_->steps_per_epoch(); ++i)
      steps.push_back(exe.submit(feeds_->batch(0, i)));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double wanted = losses_.values<double>()[i];
      CHECK(std::abs(exe.wait(steps[i]).loss - wanted) <= limit * wanted);
    }
  }

private:
  arena memory_{make_host_memory_source()};
  std::filesystem::path folder_;
  graph::program main_;
  std::unique_ptr<batch_source> feeds_;
  tensor losses_;
};

void check_actors(const std::string& name, const std::string& devices,
                  graph::merge_strategy strategy) {
  trained_program p{name};
  executor_options options;
  options.devices = parse_devices(devices);
  options.strategy = strategy;
  options.parameters = p.parameters();
  executor exe{p.main(), options};
  p.check(exe);
}

/// Steps overlap, edges are messages, and all of it is disturbed.
void check_disturbed(const std::string& name) {
  trained_program p{name};
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.hooks.form = edge_form::mixed;
  options.hooks.shuffle = delivery_shuffle{.seed = 5};
  options.parameters = p.parameters();
  executor exe{p.main(), options};
  p.check_overlapping(exe);
}

void check_plain(const std::string& name, const std::string& devices) {
  trained_program p{name};
  plain_executor_options options;
  options.devices = parse_devices(devices);
  options.parameters = p.parameters();
  plain_executor exe{p.main(), options};
  p.check(exe);
}

void check_training(const std::string& name) {
  using enum graph::merge_strategy;
  SUBCASE("by actors on one device") {
    check_actors(name, "cpu:1", all_reduce);
  }
  SUBCASE("in order on one device") {
    check_plain(name, "cpu:1");
  }
  SUBCASE("by actors on two devices") {
    check_actors(name, "cpu:2", all_reduce);
  }
  SUBCASE("by actors, updates at home") {
    check_actors(name, "cpu:2", reduce);
  }
  SUBCASE("by actors on four devices") {
    check_actors(name, "cpu:4", all_reduce);
  }
  SUBCASE("by actors, disturbed") {
    check_disturbed(name);
  }
  SUBCASE("in order on two devices") {
    check_plain(name, "cpu:2");
  }
}

} // namespace

TEST_CASE("an LSTM over padded sequences trains as in Paddle") {
  check_training("lstm");
}
TEST_CASE("a GRU over words trains as in Paddle") {
  check_training("gru");
}
TEST_CASE("bags of words of different length train as in Paddle") {
  check_training("bag");
}
TEST_CASE("branches with parameters of their own train as in Paddle") {
  check_training("cond");
}
TEST_CASE("a loop trains as in Paddle") {
  check_training("loop");
}
TEST_CASE("branches that switch the learning rate do so as in Paddle") {
  check_training("switched_rate");
}
} // TEST_SUITE("paddle.sequence_programs")

} // namespace troupe
