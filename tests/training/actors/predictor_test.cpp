// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/actors/predictor.hpp>

#include <support/caught.hpp>
#include <training/actors/asking.hpp>
#include <training/line_program.hpp>
#include <troupe/training/actors/trainer.hpp>

#include <caf/exit_reason.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.predictor") {

namespace {

/// The output of the line's only layer.
std::string output_of(const training_program& program) {
  for (auto& op : program.test.main().ops)
    if (op.type == "elementwise_sub")
      return op.only_input("X");
  return "";
}

struct served : line_batches {
  host_application app;
  caf::scoped_actor self{*app.system};
  training_program program = make_line_program();
  std::string output = output_of(program);

  parameter_set first() const {
    auto values = std::make_shared<scope>();
    run_startup(program.startup, *values);
    return {values, 0};
  }
  predictor start(std::size_t most_waiting = 8) {
    return spawn_predictor(*app.system, program.test, first(),
                           {.outputs = {output}, .most_waiting = most_waiting});
  }
  predict_batch question(float x, std::int64_t samples = 1) {
    auto value = tensor::make(memory, {samples, 1}, dtype::float32);
    for (auto& v : value.values<float>())
      v = x;
    return {share_batch({{"x", std::move(value)}})};
  }
  float at(prediction& answer) const {
    return answer.outputs.at(output).values<float>()[0];
  }

  arena memory{make_host_memory_source()};
};

} // namespace

TEST_CASE_FIXTURE(served,
                  "a predictor answers without the labels, and better with "
                  "the parameters of a training") {
  const auto answers = start();
  auto before = ask<prediction>(self, answers, question(0.5f)).get();
  CHECK(before.steps == 0);
  const auto trains = spawn_trainer(*app.system, program);
  for (std::uint64_t i = 0; i < 300; ++i)
    ask<trained_step>(self, trains, train_batch{share_batch(batch(i))}).get();
  auto now = ask<parameter_set>(self, trains, ask_parameters{}).get();
  CHECK(now.steps == 300);
  CHECK_FALSE(tell(self, answers, now));
  auto after = ask<prediction>(self, answers, question(0.5f, 3)).get();
  CHECK(after.steps == 300);
  CHECK(after.outputs.at(output).dims() == shape{3, 1});
  CHECK(at(after) == doctest::Approx(1).epsilon(0.05));
  CHECK(at(before) != at(after));
  // Training goes on, and the predictor's parameters stay as they are.
  ask<trained_step>(self, trains, train_batch{share_batch(batch(0))}).get();
  auto again = ask<prediction>(self, answers, question(0.5f, 3)).get();
  CHECK(at(again) == at(after));
}

TEST_CASE_FIXTURE(served,
                  "bad feeds and missing parameters are answered with an "
                  "error") {
  const auto answers = start();
  CHECK(code_of(ask<prediction>(self, answers, predict_batch{}).failure)
        == errc::invalid_argument);
  const auto labelled =
    ask<prediction>(self, answers, predict_batch{share_batch(batch(0))});
  CHECK(code_of(labelled.failure) == errc::not_found);
  CHECK(code_of(tell(self, answers, parameter_set{}))
        == errc::invalid_argument);
  CHECK(ask<prediction>(self, answers, question(1)).value);
}

TEST_CASE_FIXTURE(served,
                  "each of many requests gets its own answer, or busy") {
  const auto answers = start(4);
  std::vector<decltype(self->request(answers, patience, question(0)))> requests;
  for (int i = 0; i < 40; ++i)
    requests.push_back(
      self->request(answers, patience, question(0.5f + static_cast<float>(i))));
  auto one = ask<prediction>(self, answers, question(0)).value;
  int answered = 0;
  std::vector<float> got;
  for (auto& r : requests)
    r.receive(
      [&](prediction& p) {
        ++answered;
        got.push_back(at(p));
      },
      [](const caf::error& why) { CHECK(code_of(why) == errc::busy); });
  CHECK(answered >= 4);
  for (std::size_t i = 1; i < got.size(); ++i)
    CHECK(got[i] != got[i - 1]);
}

TEST_CASE_FIXTURE(served, "outputs that the program lacks are refused before "
                          "anything starts") {
  CHECK(caught([&] {
          spawn_predictor(*app.system, program.test, first(),
                          {.outputs = {"nowhere"}});
        }).code()
        == errc::not_found);
  CHECK(caught([&] { start(0); }).code() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(served, "a predictor merges the requests of actors") {
  const auto answers = spawn_predictor(
    *app.system, program.test, first(),
    {.outputs = {output}, .max_batch = 6, .max_delay = std::chrono::hours{24}});
  auto one = self->request(answers, patience, question(1, 1));
  auto two = self->request(answers, patience, question(2, 2));
  // Only together are they a full step.
  auto three = ask<prediction>(self, answers, question(3, 3)).get();
  const auto check = [&](prediction& got, float x, std::int64_t samples) {
    CHECK(got.outputs.at(output).dims() == shape{samples, 1});
    auto alone = ask<prediction>(self, start(), question(x)).get();
    CHECK(at(got) == doctest::Approx(at(alone)));
  };
  check(three, 3, 3);
  const auto fails = [](const caf::error& why) { FAIL(text_of(why)); };
  one.receive([&](prediction& got) { check(got, 1, 1); }, fails);
  two.receive([&](prediction& got) { check(got, 2, 2); }, fails);
}

TEST_CASE_FIXTURE(served, "a predictor says at any time how it is") {
  const auto answers = spawn_predictor(*app.system, program.test, first(),
                                       {.outputs = {output},
                                        .max_batch = 64,
                                        .max_delay = std::chrono::hours{24},
                                        .most_waiting = 2});
  const auto state = [&] {
    return ask<prediction_counts>(self, answers, ask_state{}).get();
  };
  CHECK(state().requests == 0);
  auto one = self->request(answers, patience, question(1));
  auto two = self->request(answers, patience, question(2));
  CHECK(code_of(ask<prediction>(self, answers, question(3)).failure)
        == errc::busy);
  const auto now = state();
  CHECK(now.requests == 2);
  CHECK(now.waiting == 2);
  CHECK(now.refused == 1);
  CHECK(now.steps == 0);
  // They are refused when the predictor ends.
  ask<prediction_counts>(self, answers, stop_predicting{}).get();
  for (auto* request : {&one, &two})
    request->receive([](const prediction&) { FAIL("answered"); },
                     [](const caf::error& why) {
                       CHECK(code_of(why) == errc::cancelled);
                       CHECK(text_of(why)
                             == "the predictor has been told to stop");
                     });
}

TEST_CASE_FIXTURE(served, "a predictor that is told to stop answers what runs, "
                          "refuses what waits, and ends") {
  const auto answers = start(64);
  self->monitor(answers);
  std::vector<decltype(self->request(answers, patience, question(0)))> requests;
  for (int i = 0; i < 40; ++i)
    requests.push_back(self->request(answers, patience, question(1)));
  auto stops = self->request(answers, patience, stop_predicting{});
  std::uint64_t answered = 0, refused = 0;
  for (auto& r : requests)
    r.receive([&](const prediction&) { ++answered; },
              [&](const caf::error& why) {
                ++refused;
                CHECK(code_of(why) == errc::cancelled);
              });
  CHECK(answered + refused == 40);
  stops.receive(
    [&](const prediction_counts& last) {
      CHECK(last.requests == 40);
      CHECK(last.waiting == 0);
      CHECK((last.steps > 0) == (answered > 0));
    },
    [](const caf::error& why) { FAIL(text_of(why)); });
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == answers.address());
    CHECK(down.reason == caf::exit_reason::normal);
  });
  CHECK(ask<prediction>(self, answers, question(0)).failure
        == caf::sec::request_receiver_down);
}

TEST_CASE_FIXTURE(served, "monitors learn how a predictor ends") {
  const auto answers = start();
  self->monitor(answers);
  self->send_exit(answers, caf::exit_reason::kill);
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == answers.address());
    CHECK(down.reason == caf::exit_reason::kill);
  });
}

TEST_CASE_FIXTURE(served, "each request that waits when a predictor ends is "
                          "answered with an error") {
  const auto answers = spawn_predictor(*app.system, program.test, first(),
                                       {.outputs = {output},
                                        .max_batch = 64,
                                        .max_delay = std::chrono::hours{24}});
  std::vector<decltype(self->request(answers, patience, question(0)))> requests;
  for (int i = 0; i < 5; ++i)
    requests.push_back(self->request(answers, patience, question(1)));
  // Its answer says that those before it have come.
  CHECK(ask<prediction>(self, answers, predict_batch{}).failure);
  self->send_exit(answers, caf::exit_reason::user_shutdown);
  int refused = 0;
  for (auto& r : requests)
    r.receive([](prediction&) { FAIL("answered"); },
              [&](const caf::error& why) {
                refused += code_of(why) == errc::cancelled;
              });
  CHECK(refused == 5);
}

} // TEST_SUITE("training.predictor")
