// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <support/files.hpp>
#include <training/line_program.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>
#include <troupe/training/data/generator_source.hpp>
#include <troupe/training/training_session.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.training_session") {

namespace {

constexpr std::uint64_t epoch = 5;

struct lines : line_batches {
  generated_batches form{.steps_per_epoch = epoch, .batch = 4};
  std::unique_ptr<batch_source> source = make_generator_source(
    [this](std::uint64_t e, std::uint64_t i) { return batch(e * epoch + i); },
    form);

  session_options options(const std::filesystem::path& snapshots = {},
                          bool resume = false) const {
    session_options made;
    made.executor.devices = parse_devices("cpu:2");
    made.executor.threads = 1;
    made.snapshots = {.folder = snapshots, .resume = resume};
    made.batches = form;
    return made;
  }
};

/// Losses of a run of `steps` steps without snapshots.
std::vector<double> losses_of(lines& data, std::uint64_t steps) {
  training_session session{make_line_program(), data.options()};
  return session.run(*data.source, {.steps = steps}).history.steps;
}

} // namespace

TEST_CASE_FIXTURE(lines, "a run reports each step and each epoch in order") {
  training_session session{make_line_program(), options()};
  std::vector<std::uint64_t> steps;
  std::vector<std::uint64_t> epochs;
  training_observer observer;
  observer.step = [&](const step_metrics& m) { steps.push_back(m.step); };
  observer.epoch = [&](std::uint64_t number, double, double) {
    epochs.push_back(number);
    CHECK(steps.size() == number * epoch);
  };
  const auto report = session.run(*source, {.epochs = 3}, observer);
  CHECK(report.steps == 15);
  CHECK(report.samples == 60);
  CHECK_FALSE(report.stopped);
  CHECK(epochs == std::vector<std::uint64_t>{1, 2, 3});
  REQUIRE(steps.size() == 15);
  for (std::uint64_t i = 0; i < 15; ++i)
    CHECK(steps[i] == i);
  CHECK(report.history.epochs[2] < report.history.epochs[0]);
  CHECK(session.position().steps == 15);
}

TEST_CASE_FIXTURE(lines,
                  "a stop within a run ends it after the steps in flight, "
                  "and the session goes on later") {
  const auto whole = losses_of(*this, 12);
  training_session session{make_line_program(), options()};
  bool stops = false;
  training_observer observer;
  observer.step = [&](const step_metrics& m) { stops |= m.step == 3; };
  observer.stop = [&] { return stops; };
  auto first = session.run(*source, {.steps = 12}, observer);
  CHECK(first.stopped);
  CHECK(first.steps < 12);
  CHECK(session.position().steps == first.steps);
  const auto rest = session.run(*source, {.steps = 12});
  auto losses = first.history.steps;
  losses.insert(losses.end(), rest.history.steps.begin(),
                rest.history.steps.end());
  CHECK(losses == whole);
}

TEST_CASE_FIXTURE(lines, "a run that its source, a bad batch or a callback has "
                         "ended goes on with the next step") {
  const auto whole = losses_of(*this, 12);
  const auto make = [&](std::uint64_t e, std::uint64_t i) {
    return batch(e * epoch + i);
  };
  std::uint64_t bad = 6; // the step at which something fails, once
  const auto fails = [&](std::uint64_t step) {
    return step == bad && std::exchange(bad, ~0u) == step;
  };
  const auto throwing = make_generator_source(
    [&](std::uint64_t e, std::uint64_t i) {
      if (fails(e * epoch + i))
        throw std::runtime_error("the exchange is closed");
      return make(e, i);
    },
    form);
  const auto spoilt = make_generator_source(
    [&](std::uint64_t e, std::uint64_t i) {
      auto made = make(e, i);
      if (fails(e * epoch + i))
        made.erase("y");
      return made;
    },
    form);
  const auto throws_at = [&](std::uint64_t step) {
    if (fails(step))
      throw std::runtime_error("a callback");
  };
  training_observer of_steps, of_ends, of_epochs;
  of_steps.step = [&](const step_metrics& m) { throws_at(m.step); };
  of_ends.done = [&](const run_position& at) { throws_at(at.steps); };
  of_epochs.epoch = [&](std::uint64_t number, double, double) {
    if (number == 1)
      throws_at(bad);
  };
  for (const auto& [data, observer] :
       {std::pair{throwing.get(), training_observer{}},
        std::pair{spoilt.get(), training_observer{}},
        std::pair{source.get(), of_steps}, std::pair{source.get(), of_ends},
        std::pair{source.get(), of_epochs}}) {
    bad = 6;
    training_session session{make_line_program(), options()};
    std::vector<double> told;
    auto watching = observer;
    watching.fetched = [&](const step_result& r) { told.push_back(r.loss); };
    CHECK_THROWS(session.run(*data, {.steps = 12}, watching));
    const auto done = session.position().steps;
    CHECK(done >= 5);
    if (data != source.get()) { // steps in flight were reported
      CHECK(done == 6);
      CHECK(told == std::vector<double>(whole.begin(), whole.begin() + 6));
    }
    const auto rest = session.run(*data, {.steps = 12});
    CHECK(rest.history.steps
          == std::vector<double>(whole.begin() + static_cast<long>(done),
                                 whole.end()));
    CHECK(rest.history.epochs.size() == 3 - done / epoch);
  }
}

TEST_CASE_FIXTURE(lines, "a session goes on after a step that has failed, with "
                         "the random numbers of the run") {
  graph::network net;
  auto x = net.data("x", {-1, 1}), y = net.data("y", {-1, 1});
  auto hidden = layers::dropout(layers::fc(x, 8), {.probability = 0.5f});
  auto far = layers::square(layers::sub(layers::fc(hidden, 1), y));
  optimizer::sgd({.learning_rate = 0.1f}).minimize(layers::mean(far));
  const auto program = make_training_program(net.startup, net.main);
  auto checking = options();
  checking.executor.hooks.check_nan = true;
  training_session undisturbed{program, checking};
  const auto whole = undisturbed.run(*source, {.steps = 10}).history.steps;

  bool fails = true;
  const auto nan_once = make_generator_source(
    [&](std::uint64_t e, std::uint64_t i) {
      auto made = batch(e * epoch + i);
      if (e * epoch + i == 4 && std::exchange(fails, false))
        made["x"].values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
      return made;
    },
    form);
  training_session session{program, checking};
  CHECK(caught([&] { session.run(*nan_once, {.steps = 10}); }).code()
        == errc::not_finite);
  CHECK(session.position().steps == 4);
  CHECK(session.run(*nan_once, {.steps = 10}).history.steps
        == std::vector<double>(whole.begin() + 4, whole.end()));
}

TEST_CASE_FIXTURE(lines, "callbacks cannot begin a run, nor read parameters "
                         "that steps use") {
  temporary_folder folder;
  training_session session{make_line_program(), options(folder.path())};
  std::vector<error> refused;
  std::uint64_t rests = 0;
  training_observer observer;
  observer.step = [&](const step_metrics& m) {
    if (m.step == 1)
      refused = {caught([&] { session.run(*source, {.steps = 1}); }),
                 caught([&] { session.save(folder.path() / "net"); }),
                 caught([&] { session.take_snapshot(); }),
                 caught([&] { session.evaluate(*source); })};
  };
  observer.rest_between_epochs = true;
  observer.epoch = [&](std::uint64_t, double, double) {
    session.evaluate(*source);
    session.save(folder.path() / "net");
    ++rests;
  };
  const auto report = session.run(*source, {.epochs = 2}, observer);
  CHECK(report.history.steps == losses_of(*this, 2 * epoch));
  CHECK(rests == 2);
  REQUIRE(refused.size() == 4);
  CHECK(says(refused[0], "the session is in use"));
  for (auto& why : refused)
    CHECK(why.code() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(lines,
                  "a run that goes on from a snapshot has the same losses, "
                  "bit by bit") {
  const auto whole = losses_of(*this, 12);
  temporary_folder folder;
  std::string name;
  {
    training_session session{make_line_program(), options(folder.path())};
    session.run(*source, {.steps = 7, .snapshot_every = 7});
    name = session.snapshot_name();
  }
  training_session session{make_line_program(), options(folder.path(), true)};
  CHECK(session.position().steps == 7);
  CHECK(session.take_notes()
        == std::vector<std::string>{"goes on from " + name});
  const auto rest = session.run(*source, {.steps = 12});
  CHECK(rest.history.steps
        == std::vector<double>(whole.begin() + 7, whole.end()));
}

TEST_CASE_FIXTURE(lines,
                  "snapshots of another program, or that nobody wants to "
                  "go on from, are refused") {
  temporary_folder folder;
  {
    training_session session{make_line_program(), options(folder.path())};
    session.run(*source, {.steps = 2, .snapshot_every = 2});
  }
  const auto other = caught([&] {
    training_session session{make_line_program("relu"),
                             options(folder.path(), true)};
  });
  CHECK(other.code() == errc::invalid_argument);
  CHECK(other.message().find("is of a run with the program")
        != std::string::npos);
  const auto mixed = caught([&] {
    training_session session{make_line_program(), options(folder.path())};
  });
  CHECK(mixed.code() == errc::invalid_argument);
  CHECK(mixed.message().find("has snapshots of an earlier run")
        != std::string::npos);
  const auto none = caught([&] {
    auto keeps_none = options(folder.path(), true);
    keeps_none.snapshots.keep = 0;
    training_session session{make_line_program(), keeps_none};
  });
  CHECK(none.code() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(lines, "who takes a snapshot is told when it is written") {
  temporary_folder folder;
  training_session session{make_line_program(), options(folder.path())};
  session.run(*source, {.steps = 2});
  std::atomic<int> written{0};
  session.take_snapshot([&](const std::optional<std::string>& failure) {
    if (!failure)
      ++written;
  });
  session.require_snapshots_written();
  while (written == 0)
    std::this_thread::yield();
  CHECK(written == 1);
  training_session without{make_line_program(), options()};
  CHECK(caught([&] { without.take_snapshot(); }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(lines, "the learning rate changes between steps") {
  training_session session{make_line_program(), options()};
  CHECK(session.learning_rate() == doctest::Approx(0.1));
  session.run(*source, {.steps = 1});
  const auto before = session.evaluate(*source).loss;
  session.set_learning_rate(0);
  session.run(*source, {.steps = 4});
  CHECK(session.learning_rate() == 0);
  CHECK(session.evaluate(*source).loss == before);
  session.set_learning_rate(0.1);
  session.run(*source, {.steps = 8});
  CHECK(session.evaluate(*source).loss < before);
  for (double rate : {std::nan(""), -0.1, 1e300})
    CHECK(caught([&] { session.set_learning_rate(rate); }).code()
          == errc::invalid_argument);
  CHECK(session.learning_rate() == doctest::Approx(0.1));
}

TEST_CASE_FIXTURE(lines, "a batch that is refused does not lose a new learning "
                         "rate") {
  training_session session{make_line_program(), options()};
  session.set_learning_rate(0);
  auto wrong = batch(0);
  wrong.erase("y");
  CHECK(
    caught([&] { session.run_async(wrong, {}, [](step_outcome) {}); }).code()
    == errc::not_found);
  CHECK(session.learning_rate() == 0);
  const auto before = session.evaluate(*source).loss;
  session.run(*source, {.steps = 2});
  CHECK(session.evaluate(*source).loss == before);
}

TEST_CASE_FIXTURE(lines, "a queue that closes ends the run") {
  batch_queue queue{form, 2};
  training_session session{make_line_program(), options()};
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < 8; ++i)
      queue.push(batch(i));
    queue.close();
  });
  const auto report = session.run(queue, {.steps = 100});
  producer.join();
  CHECK(report.stopped);
  CHECK(report.history.steps == losses_of(*this, 8));
}

TEST_CASE_FIXTURE(lines, "what is saved can be read back") {
  temporary_folder folder;
  training_session session{make_line_program(), options()};
  session.run(*source, {.steps = 3});
  session.save(folder.path() / "saved");
  const auto read = graph::read_program_folder(folder.path() / "saved");
  CHECK(read.info.loss == session.program().loss);
  CHECK(read.info.batch == 4);
}

TEST_CASE_FIXTURE(lines, "a second save replaces the first one, and leaves "
                         "files of others alone") {
  temporary_folder folder;
  const auto saved = folder.path() / "saved";
  training_session session{make_line_program(), options()};
  const auto saved_weight = [&] {
    session.save(saved);
    scope values;
    arena memory{make_host_memory_source()};
    const auto main = graph::read_program_folder(saved).main;
    graph::load_parameters(main, saved, values, memory);
    return values.find("fc_0.w_0")->as_tensor().values<float>()[0];
  };
  const auto before = saved_weight();
  std::ofstream{saved / "notes.txt"} << "mine";
  session.run(*source, {.steps = 3});
  const auto after = saved_weight();
  CHECK(after != before);
  CHECK(std::filesystem::exists(saved / "notes.txt"));
}

TEST_CASE_FIXTURE(lines, "sessions in one process do not see each other") {
  const auto expected = losses_of(*this, 20);
  auto other = make_generator_source(
    [this](std::uint64_t e, std::uint64_t i) { return batch(e * epoch + i); },
    form);
  training_session a{make_line_program(), options()};
  training_session b{make_line_program(), options()};
  std::vector<double> of_b;
  line_batches own; // arenas are for any thread; this keeps the two apart
  std::thread beside([&] {
    auto mine = make_generator_source(
      [&own](std::uint64_t e, std::uint64_t i) {
        return own.batch(e * epoch + i);
      },
      form);
    of_b = b.run(*mine, {.steps = 20}).history.steps;
  });
  const auto of_a = a.run(*other, {.steps = 20}).history.steps;
  beside.join();
  CHECK(of_a == expected);
  CHECK(of_b == expected);
}

} // TEST_SUITE("training.training_session")
