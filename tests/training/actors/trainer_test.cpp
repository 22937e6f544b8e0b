// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/trainer.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>
#include <training/actors/asking.hpp>
#include <training/line_program.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <caf/actor_registry.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.trainer") {

namespace {

namespace fs = std::filesystem;

trainer_options on_two_devices(std::size_t most_waiting = 8) {
  trainer_options options;
  options.session.executor.devices = parse_devices("cpu:2");
  options.most_waiting = most_waiting;
  return options;
}

struct bench : line_batches {
  host_application app;
  caf::scoped_actor self{*app.system};

  train_batch next(std::uint64_t number) {
    return {share_batch(batch(number))};
  }
  trainer start(const trainer_options& options = on_two_devices()) {
    return spawn_trainer(*app.system, make_line_program(), options);
  }
  /// Answers to requests that were sent before, in this order.
  template <class T, class Handle>
  std::vector<answer<T>> collect(std::vector<Handle>& requests) {
    std::vector<answer<T>> answers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests[i].receive(
        [&](T& value) { answers[i].value = std::move(value); },
        [&](caf::error& why) { answers[i].failure = std::move(why); });
    return answers;
  }
  auto ask_for_step(const trainer& to, std::uint64_t number) {
    return self->request(to, patience, next(number));
  }
};

std::vector<double> losses_of_executor(line_batches& data, int steps) {
  const auto program = make_line_program();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.threads = 1;
  options.parameters = std::make_shared<scope>();
  run_startup(program.startup, *options.parameters);
  executor exe{program.main, options};
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(exe.run(data.batch(static_cast<std::uint64_t>(i))).loss);
  return losses;
}

std::size_t count_of(const char* folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// Answers each value when it is told to.
caf::behavior slow_reader(caf::event_based_actor* me,
                          std::vector<variable_value>* got) {
  auto held = std::make_shared<std::vector<caf::response_promise>>();
  return {[=](const variable_value& value) {
            got->push_back(value);
            auto promise = me->make_response_promise();
            held->push_back(promise);
            return promise;
          },
          [=](int) {
            for (auto& promise : *held)
              promise.deliver(caf::unit);
            held->clear();
            return static_cast<int>(got->size());
          }};
}

} // namespace

TEST_CASE_FIXTURE(line_batches,
                  "a trainer computes what an executor does, in any "
                  "actor system") {
  const auto expected = losses_of_executor(*this, 6);
  for (const bool is_configured : {true, false})
    for (const int threads : {1, 2}) {
      host_application app{threads, is_configured};
      caf::scoped_actor self{*app.system};
      const auto to =
        spawn_trainer(*app.system, make_line_program(), on_two_devices());
      std::vector<double> losses;
      for (std::uint64_t i = 0; i < 6; ++i) {
        auto step =
          ask<trained_step>(self, to, train_batch{share_batch(batch(i))}).get();
        CHECK(step.step == i);
        CHECK(step.samples == 4);
        losses.push_back(step.loss);
      }
      CHECK(losses == expected);
    }
}

TEST_CASE_FIXTURE(bench, "batches are trained in the order in which they are "
                         "sent") {
  const auto to = start();
  using request = decltype(ask_for_step(to, 0));
  std::vector<request> requests;
  for (std::uint64_t i = 0; i < 8; ++i)
    requests.push_back(ask_for_step(to, i));
  std::vector<double> losses;
  for (auto& got : collect<trained_step>(requests))
    losses.push_back(got.get().loss);
  CHECK(losses == losses_of_executor(*this, 8));
}

TEST_CASE_FIXTURE(bench, "a request that does not fit is answered with busy at "
                         "once, and the others later") {
  const auto to = start(on_two_devices(2));
  CHECK_FALSE(tell(self, to, pause_training{}));
  using request = decltype(ask_for_step(to, 0));
  std::vector<request> requests;
  requests.push_back(ask_for_step(to, 0));
  requests.push_back(ask_for_step(to, 1));
  const auto refused = ask<trained_step>(self, to, next(2));
  CHECK(code_of(refused.failure) == errc::busy);
  CHECK(text_of(refused.failure) == "2 requests wait, no more are taken");
  auto state = ask<trainer_state>(self, to, ask_state{}).get();
  CHECK(state.is_paused);
  CHECK(state.waiting == 2);
  CHECK(state.running == 0);
  CHECK(state.refused == 1);
  CHECK_FALSE(tell(self, to, resume_training{}));
  for (auto& got : collect<trained_step>(requests))
    CHECK(got.value.has_value());
  state = ask<trainer_state>(self, to, ask_state{}).get();
  CHECK(state.steps == 2);
  CHECK(state.waiting == 0);
}

TEST_CASE_FIXTURE(bench,
                  "bad batches are answered with an error, and the trainer "
                  "goes on") {
  const auto to = start();
  auto wrong = batch(0);
  wrong.erase("y");
  const auto missing =
    ask<trained_step>(self, to, train_batch{share_batch(wrong)});
  CHECK(code_of(missing.failure) == errc::not_found);
  CHECK(text_of(missing.failure).find("variable y") != std::string::npos);
  const auto nothing = ask<trained_step>(self, to, train_batch{});
  CHECK(code_of(nothing.failure) == errc::invalid_argument);
  CHECK(ask<trained_step>(self, to, next(0)).get().step == 0);
  CHECK(ask<trainer_state>(self, to, ask_state{}).get().failed == 2);
}

TEST_CASE_FIXTURE(bench,
                  "a step that fails is answered with its error, and later "
                  "ones run") {
  auto options = on_two_devices();
  options.session.executor.hooks.check_nan = true;
  const auto to = start(options);
  auto bad = batch(0);
  bad["x"].values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  const auto failed =
    ask<trained_step>(self, to, train_batch{share_batch(bad)});
  CHECK(code_of(failed.failure) == errc::not_finite);
  CHECK(ask<trained_step>(self, to, next(0)).get().step == 0);
}

TEST_CASE_FIXTURE(bench,
                  "a trainer that is told to stop ends the running steps, "
                  "refuses what waits, and ends") {
  const auto to = start();
  self->monitor(to);
  using request = decltype(ask_for_step(to, 0));
  std::vector<request> requests;
  for (std::uint64_t i = 0; i < 6; ++i)
    requests.push_back(ask_for_step(to, i));
  auto stops = self->request(to, patience, stop_training{});
  std::size_t done = 0;
  for (auto& got : collect<trained_step>(requests)) {
    done += got.value.has_value();
    if (!got.value)
      CHECK(code_of(got.failure) == errc::cancelled);
  }
  stops.receive(
    [&](const trainer_state& last) {
      CHECK(last.steps == done);
      CHECK(last.running == 0);
    },
    [](const caf::error& why) { FAIL(text_of(why)); });
  bool is_down = false;
  self->receive([&](const caf::down_msg& down) {
    is_down = true;
    CHECK(down.reason == caf::exit_reason::normal);
  });
  CHECK(is_down);
  CHECK(ask<trained_step>(self, to, next(0)).failure
        == caf::sec::request_receiver_down);
}

TEST_CASE_FIXTURE(bench,
                  "an exit message ends a trainer at once, and monitors and "
                  "requests learn of it") {
  const auto to = start();
  self->monitor(to);
  CHECK_FALSE(tell(self, to, pause_training{}));
  auto waits = ask_for_step(to, 0);
  self->send_exit(to, caf::exit_reason::user_shutdown);
  bool is_refused = false;
  waits.receive([](const trained_step&) {},
                [&](const caf::error& why) { is_refused = !!why; });
  CHECK(is_refused);
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.reason == caf::exit_reason::user_shutdown);
  });
}

TEST_CASE_FIXTURE(bench, "an actor that is linked to a trainer ends with it, "
                         "unless the trainer was told to stop") {
  const auto to = start(), stopped = start();
  const auto linked_to = [this](const trainer& other) {
    const auto made = app.system->spawn([other](caf::event_based_actor* me) {
      me->link_to(other);
      return caf::behavior{[](int number) { return number; }};
    });
    CHECK(ask<int>(self, made, 7).get() == 7); // it has its link
    return made;
  };
  const auto linked = linked_to(to), other = linked_to(stopped);
  self->monitor(stopped);
  ask<trainer_state>(self, stopped, stop_training{}).get();
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.reason == caf::exit_reason::normal);
  });
  CHECK(ask<int>(self, other, 7).get() == 7);
  self->monitor(linked);
  self->send_exit(to, caf::exit_reason::kill);
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == linked.address());
    CHECK(down.reason == caf::exit_reason::kill);
  });
}

TEST_CASE_FIXTURE(bench, "a trainer ends with an actor that is linked to it, "
                         "and answers what waits") {
  const auto to = start();
  const auto linked = app.system->spawn([to](caf::event_based_actor* me) {
    me->link_to(to);
    return caf::behavior{[](int number) { return number; }};
  });
  CHECK(ask<int>(self, linked, 7).get() == 7);
  CHECK_FALSE(tell(self, to, pause_training{}));
  self->monitor(to);
  auto waits = ask_for_step(to, 0);
  ask<trainer_state>(self, to, ask_state{}).get(); // the batch has come
  self->send_exit(linked, caf::exit_reason::user_shutdown);
  waits.receive(
    [](const trained_step&) { FAIL("trained"); },
    [](const caf::error& why) { CHECK(code_of(why) == errc::cancelled); });
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == to.address());
    CHECK(down.reason == caf::exit_reason::user_shutdown);
  });
}

TEST_CASE_FIXTURE(bench, "a batch whose sender has stopped waiting is trained "
                         "all the same") {
  const auto to = start();
  CHECK_FALSE(tell(self, to, pause_training{}));
  self->request(to, std::chrono::milliseconds{1}, next(0))
    .receive(
      [](const trained_step&) { FAIL("trained"); },
      [](const caf::error& why) { CHECK(why == caf::sec::request_timeout); });
  CHECK(ask<trainer_state>(self, to, ask_state{}).get().waiting == 1);
  CHECK_FALSE(tell(self, to, resume_training{}));
  CHECK(ask<trained_step>(self, to, next(1)).get().step == 1);
}

/// What a trainer is asked that has done `steps` and holds batches back.
void check_answers_of_paused(bench& b, const trainer& to, std::uint64_t steps) {
  const auto state = ask<trainer_state>(b.self, to, ask_state{}).get();
  CHECK(state.is_paused);
  CHECK(state.waiting == 2);
  CHECK(state.steps == steps);
  CHECK(ask<evaluation>(b.self, to, evaluate_batch{share_batch(b.batch(0))})
          .value.has_value());
  CHECK(ask<parameter_set>(b.self, to, ask_parameters{}).get().steps == steps);
  CHECK_FALSE(tell(b.self, to, change_learning_rate{0.01}));
  const temporary_folder folder;
  CHECK_FALSE(
    tell(b.self, to, save_program_to{(folder.path() / "net").string()}));
  CHECK(std::filesystem::exists(folder.path() / "net" / "main.pdmodel"));
}

TEST_CASE_FIXTURE(bench, "a paused trainer answers all that is no batch") {
  const auto to = start(on_two_devices(2));
  CHECK(ask<trained_step>(self, to, next(0)).get().step == 0);
  CHECK_FALSE(tell(self, to, pause_training{}));
  using request = decltype(ask_for_step(to, 0));
  std::vector<request> requests;
  requests.push_back(ask_for_step(to, 1));
  requests.push_back(ask_for_step(to, 2));
  check_answers_of_paused(*this, to, 1);
  CHECK_FALSE(tell(self, to, resume_training{}));
  for (auto& got : collect<trained_step>(requests))
    CHECK(got.value.has_value());
}

TEST_CASE_FIXTURE(bench, "a snapshot of a paused trainer is of the steps that "
                         "were done, and has none of the batches that wait") {
  const temporary_folder folder;
  auto options = on_two_devices();
  options.session.snapshots.folder = folder.path();
  const auto expected = losses_of_executor(*this, 3);
  {
    const auto to = start(options);
    ask<trained_step>(self, to, next(0)).get();
    CHECK_FALSE(tell(self, to, pause_training{}));
    auto waits = ask_for_step(to, 9);
    CHECK(ask<taken_snapshot>(self, to, take_snapshot{}).get().steps == 1);
    CHECK(ask<trainer_state>(self, to, ask_state{}).get().waiting == 1);
    self->monitor(to);
    ask<trainer_state>(self, to, stop_training{}).get();
    waits.receive(
      [](const trained_step&) { FAIL("trained"); },
      [](const caf::error& why) { CHECK(code_of(why) == errc::cancelled); });
    self->receive([](const caf::down_msg&) {}); // it holds the folder no more
  }
  options.session.snapshots.resume = true;
  const auto to = start(options);
  CHECK(ask<trainer_state>(self, to, ask_state{}).get().steps == 1);
  for (std::uint64_t i = 1; i < 3; ++i)
    CHECK(ask<trained_step>(self, to, next(i)).get().loss == expected[i]);
}

TEST_CASE_FIXTURE(bench, "a trainer whose run is paused on a board answers, "
                         "lets single steps through, and stops") {
  run_pace* pace = nullptr;
  auto options = on_two_devices(2);
  options.session.executor.attach =
    [&](executor& exe) -> std::shared_ptr<void> {
    pace = &exe.pace();
    return nullptr;
  };
  const auto to = start(options);
  self->monitor(to);
  pace->pause();
  auto first = ask_for_step(to, 0), second = ask_for_step(to, 1);
  check_answers_of_paused(*this, to, 0);
  pace->admit_step();
  first.receive([](const trained_step& done) { CHECK(done.step == 0); },
                [](const caf::error& why) { FAIL(text_of(why)); });
  CHECK(ask<trainer_state>(self, to, ask_state{}).get().waiting == 1);
  pace->resume();
  second.receive([](const trained_step& done) { CHECK(done.step == 1); },
                 [](const caf::error& why) { FAIL(text_of(why)); });

  // A batch that is refused uses up no single step.
  pace->pause();
  auto wrong = self->request(to, patience, train_batch{});
  auto right = ask_for_step(to, 2);
  pace->admit_step();
  wrong.receive([](const trained_step&) { FAIL("trained"); },
                [](const caf::error& why) {
                  CHECK(code_of(why) == errc::invalid_argument);
                });
  right.receive([](const trained_step& done) { CHECK(done.step == 2); },
                [](const caf::error& why) { FAIL(text_of(why)); });

  auto last = ask_for_step(to, 3);
  CHECK(ask<trainer_state>(self, to, stop_training{}).get().steps == 3);
  last.receive(
    [](const trained_step&) { FAIL("trained"); },
    [](const caf::error& why) { CHECK(code_of(why) == errc::cancelled); });
}

TEST_CASE_FIXTURE(bench,
                  "a trainer that nobody knows ends after its last step") {
  for (int round = 0; round < 20; ++round) {
    const auto to = start();
    // Answers to a sender would wait in its mailbox, with the trainer's
    // address.
    for (std::uint64_t i = 0; i < 3; ++i)
      caf::anon_send(to, next(i));
  }
  // Waits until all actors but `self` have ended.
  app.system->registry().await_running_count_equal(1);
}

TEST_CASE_FIXTURE(bench,
                  "snapshots are on the disk when they are answered, and "
                  "another trainer goes on from them") {
  temporary_folder folder;
  auto options = on_two_devices();
  options.session.snapshots.folder = folder.path();
  const auto expected = losses_of_executor(*this, 6);
  {
    const auto to = start(options);
    for (std::uint64_t i = 0; i < 3; ++i)
      ask<trained_step>(self, to, next(i)).get();
    const auto taken = ask<taken_snapshot>(self, to, take_snapshot{}).get();
    CHECK(taken.steps == 3);
    CHECK(fs::exists(taken.name + ".rank-0-of-1.npz"));
    ask<trainer_state>(self, to, stop_training{});
  }
  options.session.snapshots.resume = true;
  const auto to = start(options);
  CHECK(ask<trainer_state>(self, to, ask_state{}).get().steps == 3);
  for (std::uint64_t i = 3; i < 6; ++i)
    CHECK(ask<trained_step>(self, to, next(i)).get().loss == expected[i]);
  const auto other = caught(
    [&] { spawn_trainer(*app.system, make_line_program("relu"), options); });
  CHECK(other.code() == errc::invalid_argument);
  const auto without = start();
  CHECK(code_of(ask<taken_snapshot>(self, without, take_snapshot{}).failure)
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(bench,
                  "an evaluation sees the batches before it, and a changed "
                  "learning rate holds for those after it") {
  const auto to = start();
  ask<trained_step>(self, to, next(0)).get();
  const auto evaluate = [&] {
    return ask<evaluation>(self, to, evaluate_batch{share_batch(batch(9))})
      .get();
  };
  const auto before = evaluate();
  CHECK(before.samples == 4);
  CHECK_FALSE(tell(self, to, change_learning_rate{0}));
  ask<trained_step>(self, to, next(1)).get();
  CHECK(evaluate().loss == before.loss);
  CHECK_FALSE(tell(self, to, change_learning_rate{0.1}));
  for (std::uint64_t i = 0; i < 5; ++i)
    ask<trained_step>(self, to, next(i)).get();
  CHECK(evaluate().loss < before.loss);
}

TEST_CASE_FIXTURE(bench, "a trainer saves a program that can be read back") {
  temporary_folder folder;
  const auto to = start();
  ask<trained_step>(self, to, next(0)).get();
  const auto where = folder.path() / "saved";
  CHECK_FALSE(tell(self, to, save_program_to{where.string()}));
  CHECK_NOTHROW(graph::read_program_folder(where));
  const auto nowhere =
    tell(self, to, save_program_to{(folder.path() / "no" / "where").string()});
  CHECK(code_of(nowhere) == errc::io_failure);
}

TEST_CASE_FIXTURE(bench,
                  "a subscriber gets every n-th value, and no more than it "
                  "has room for") {
  auto options = on_two_devices();
  options.session.executor.fetches = {"fc_0.w_0"};
  const auto to = start(options);
  std::vector<variable_value> got;
  const auto reader = app.system->spawn(slow_reader, &got);
  CHECK(code_of(tell(self, to, subscribe{"nothing", 1, 1, reader}))
        == errc::not_found);
  CHECK(code_of(tell(self, to, subscribe{"fc_0.w_0", 0, 1, reader}))
        == errc::invalid_argument);
  CHECK_FALSE(tell(self, to, subscribe{"fc_0.w_0", 2, 1, reader}));
  for (std::uint64_t i = 0; i < 5; ++i) // steps 0, 2 and 4 are due
    ask<trained_step>(self, to, next(i)).get();
  CHECK(ask<int>(self, reader, 0).get() == 1);
  // The trainer has the reader's answer when it answers after it.
  ask<trainer_state>(self, to, ask_state{}).get();
  for (std::uint64_t i = 5; i < 7; ++i)
    ask<trained_step>(self, to, next(i)).get();
  CHECK(ask<int>(self, reader, 0).get() == 2);
  REQUIRE(got.size() == 2);
  CHECK(got[0].step == 0);
  CHECK(got[0].values.size() == 2);
  CHECK(got[1].step == 6);
  CHECK(got[1].dropped == 2);
  self->send_exit(reader, caf::exit_reason::kill);
  self->wait_for(reader);
  for (std::uint64_t i = 7; i < 10; ++i)
    ask<trained_step>(self, to, next(i)).get();
}

TEST_CASE_FIXTURE(bench, "subscribers of one variable have periods of their "
                         "own") {
  const auto to = start();
  std::vector<variable_value> each, third;
  const auto reader = app.system->spawn(slow_reader, &each);
  const auto rare = app.system->spawn(slow_reader, &third);
  const auto loss = make_line_program().loss;
  CHECK_FALSE(tell(self, to, subscribe{loss, 1, 9, reader}));
  CHECK_FALSE(tell(self, to, subscribe{loss, 3, 9, rare}));
  for (std::uint64_t i = 0; i < 5; ++i)
    ask<trained_step>(self, to, next(i)).get();
  CHECK(ask<int>(self, reader, 0).get() == 5);
  CHECK(ask<int>(self, rare, 0).get() == 2); // of steps 0 and 3
}

TEST_CASE_FIXTURE(bench,
                  "a subscription ends when somebody asks for it, and no "
                  "other one does") {
  auto options = on_two_devices();
  options.session.executor.fetches = {"fc_0.w_0"};
  const auto to = start(options);
  std::vector<variable_value> got, kept;
  const auto reader = app.system->spawn(slow_reader, &got);
  const auto other = app.system->spawn(slow_reader, &kept);
  const auto loss = make_line_program().loss;
  CHECK_FALSE(tell(self, to, subscribe{"fc_0.w_0", 1, 9, reader}));
  CHECK_FALSE(tell(self, to, subscribe{"fc_0.w_0", 2, 9, reader}));
  CHECK_FALSE(tell(self, to, subscribe{loss, 1, 9, reader}));
  CHECK_FALSE(tell(self, to, subscribe{"fc_0.w_0", 1, 9, other}));
  ask<trained_step>(self, to, next(0)).get();
  CHECK(ask<int>(self, reader, 0).get() == 3);
  for (int twice = 0; twice < 2; ++twice)
    CHECK_FALSE(tell(self, to, unsubscribe{"fc_0.w_0", reader}));
  CHECK_FALSE(tell(self, to, unsubscribe{"nothing", reader}));
  CHECK_FALSE(tell(self, to, unsubscribe{"fc_0.w_0", {}}));
  for (std::uint64_t i = 1; i < 3; ++i)
    ask<trained_step>(self, to, next(i)).get();
  CHECK(ask<int>(self, reader, 0).get() == 5); // the loss, two more times
  CHECK(got[4].variable == loss);
  CHECK(ask<int>(self, other, 0).get() == 3);
  CHECK_FALSE(tell(self, to, subscribe{"fc_0.w_0", 1, 9, reader}));
  ask<trained_step>(self, to, next(3)).get();
  CHECK(ask<int>(self, reader, 0).get() == 7);
  CHECK(ask<int>(self, other, 0).get() == 4);
}

TEST_CASE_FIXTURE(bench, "trainers in one actor system do not see each other") {
  const auto expected = losses_of_executor(*this, 6);
  const auto a = start(), b = start();
  CHECK_FALSE(tell(self, a, change_learning_rate{0.5}));
  std::vector<double> of_b;
  for (std::uint64_t i = 0; i < 6; ++i) {
    caf::anon_send(a, next(i));
    of_b.push_back(ask<trained_step>(self, b, next(i)).get().loss);
  }
  CHECK(of_b == expected);
}

TEST_CASE("a trainer for which nothing may wait is refused") {
  host_application app;
  CHECK(caught([&] {
          spawn_trainer(*app.system, make_line_program(), on_two_devices(0));
        }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(bench, "of a thousand trainers nothing is left") {
  const auto make_and_end = [&] {
    auto options = on_two_devices();
    options.session.executor.devices = {device_id{}};
    const auto to = start(options);
    ask<trained_step>(self, to, next(0)).get();
    ask<trainer_state>(self, to, stop_training{}).get();
  };
  make_and_end(); // what the process keeps from its first one
  app.system->registry().await_running_count_equal(1);
  const auto threads = count_of("/proc/self/task");
  const auto descriptors = count_of("/proc/self/fd");
  for (int i = 0; i < 1000; ++i)
    make_and_end();
  app.system->registry().await_running_count_equal(1);
  CHECK(count_of("/proc/self/task") == threads);
  CHECK(count_of("/proc/self/fd") == descriptors);
}

} // TEST_SUITE("training.trainer")
