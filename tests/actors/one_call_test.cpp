// SPDX-License-Identifier: Apache-2.0
//
// What an executor says to a call that comes at the wrong time.
#include <troupe/actors/executor.hpp>

#include <actors/one_op_program.hpp>
#include <support/caught.hpp>
#include <troupe/actors/outside_op.hpp>

#include <doctest/doctest.h>

#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.one_call") {

namespace {

/// Answers when the test says so.
class held_op final : public outside_op {
public:
  void ask(outside_question question, answer_function answer) override {
    inputs_ = std::move(question.inputs);
    answer_ = std::move(answer);
    asked_.count_down();
  }
  void wait_for_question() { asked_.wait(); }
  void answer() { answer_({{{"Out", inputs_.at("X")}}, {}}); }

private:
  std::latch asked_{1};
  slot_tensors inputs_;
  answer_function answer_;
};

/// An executor whose first step ends when the test says so.
struct held_step {
  std::shared_ptr<held_op> held = std::make_shared<held_op>();
  arena memory{make_host_memory_source()};
  std::unique_ptr<executor> exe;

  held_step() {
    exe = std::make_unique<executor>(
      one_op_program("held"),
      executor_options{.outside_ops = {{"held", held}}});
  }
  feed_map batch() {
    return {{"x", tensor::make(memory, {1, 1}, dtype::float32)}};
  }
};

} // namespace

TEST_CASE_FIXTURE(held_step, "a second thread in an executor is refused, and "
                             "the first goes on") {
  std::thread first{[this] { CHECK(exe->run(batch()).step == 0); }};
  held->wait_for_question();
  for (auto& second : {caught([this] { exe->run(batch()); }),
                       caught([this] { exe->submit(batch()); }),
                       caught([this] { (void)exe->run_async(batch()); }),
                       caught([this] { exe->wait(0); }),
                       caught([this] { exe->synchronize_parameters(); })}) {
    CHECK(second.code() == errc::invalid_argument);
    CHECK(says(second, "the executor is in use"));
  }
  held->answer();
  first.join();
}

TEST_CASE_FIXTURE(held_step, "parameters that a step uses are not saved") {
  auto step = exe->run_async(batch());
  held->wait_for_question();
  CHECK(exe->is_running());
  for (auto& early : {caught([this] { exe->synchronize_parameters(); }),
                      caught([this] { exe->require_same_replicas(); }),
                      caught([this] { exe->continue_from(0); })}) {
    CHECK(early.code() == errc::invalid_argument);
    CHECK(says(early, "steps are running"));
  }
  held->answer();
  step.get();
  CHECK_FALSE(exe->is_running());
  CHECK_NOTHROW(exe->synchronize_parameters());
}

TEST_CASE("an executor without a program is refused") {
  const std::shared_ptr<const graph::program> none;
  CHECK(caught([&] { executor{none}; }).code() == errc::invalid_argument);
}

} // TEST_SUITE("actors.one_call")
