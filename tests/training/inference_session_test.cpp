// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference_session.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>
#include <training/inference/small_programs.hpp>
#include <training/line_program.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>
#include <troupe/graph/paddle/program_file.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.inference_session") {

namespace {

/// Longer than any test: a step begins only when it is full.
constexpr std::chrono::hours never{24};

predictor_options asking_for(const asked_program& asked,
                             std::int64_t max_batch = 64,
                             std::chrono::microseconds max_delay = {},
                             std::size_t most_waiting = 1024) {
  return {.executor = {.threads = 2},
          .outputs = {asked.output},
          .max_batch = max_batch,
          .max_delay = max_delay,
          .most_waiting = most_waiting};
}

struct session_of : asked_program {
  inference_session session;

  session_of(asked_program asked, const predictor_options& options)
    : asked_program(std::move(asked)), session(test, parameters, options) {}

  std::vector<float> ask(feed_map feeds) {
    return values_in(
      session.predict(std::move(feeds)).get().outputs.at(output));
  }
};

session_of multiplying(std::int64_t max_batch = 64,
                       std::chrono::microseconds max_delay = {},
                       std::size_t most_waiting = 1024) {
  auto asked = multiplier();
  const auto options = asking_for(asked, max_batch, max_delay, most_waiting);
  return {std::move(asked), options};
}

} // namespace

TEST_CASE("each of many callers gets the answers to its own requests") {
  constexpr unsigned callers = 8;
  constexpr int requests = 300;
  auto asked = multiplying(32);
  std::atomic<int> wrong{0};
  const auto call = [&](unsigned caller) {
    std::mt19937 random{caller};
    for (int i = 0; i < requests; ++i) {
      std::vector<float> values(1 + random() % 5);
      for (auto& v : values)
        v = static_cast<float>(random() % 100'000 * callers + caller);
      wrong += asked.ask(numbers(values)) != values;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned c = 0; c < callers; ++c)
    threads.emplace_back(call, c);
  for (auto& t : threads)
    t.join();
  CHECK(wrong == 0);
  CHECK(asked.session.counts().requests == callers * requests);
}

TEST_CASE("requests of different sizes are one step") {
  auto asked = multiplying(6, never);
  auto one = asked.session.predict(numbers({1}));
  auto two = asked.session.predict(numbers({2, 3}));
  auto three = asked.session.predict(numbers({4, 5, 6}));
  const auto& name = asked.output;
  CHECK(values_in(one.get().outputs.at(name)) == std::vector<float>{1});
  CHECK(values_in(two.get().outputs.at(name)) == std::vector<float>{2, 3});
  const auto last = three.get().outputs.at(name);
  CHECK(last.dims() == shape{3, 1});
  CHECK(values_in(last) == std::vector<float>{4, 5, 6});
  CHECK(asked.session.counts().steps == 1);
}

TEST_CASE("a request larger than a step, and one after its delay, run alone") {
  auto large = multiplying(2, never);
  CHECK(large.ask(numbers({1, 2, 3, 4, 5})).size() == 5);
  CHECK(large.session.counts().steps == 1);
  auto late = multiplying(64, std::chrono::milliseconds{1});
  CHECK(late.ask(numbers({7})) == std::vector<float>{7});
}

TEST_CASE("a request that does not fit the program fails, its neighbours do "
          "not") {
  auto asked = multiplying(2, never);
  auto first = asked.session.predict(numbers({1}));
  const auto wide = caught([&] {
    asked.session.predict(fed<float>("x", {1, 2}, {1, 2}));
  });
  CHECK(wide.code() == errc::shape_mismatch);
  CHECK(wide.where().variable == "x");
  CHECK(caught([&] {
          asked.session.predict(fed<double>("x", {1, 1}, {1}));
        }).code()
        == errc::dtype_mismatch);
  CHECK(caught([&] { asked.session.predict({}); }).code() == errc::not_found);
  auto with_factor = numbers({1});
  with_factor.merge(fed<float>("factor", {1, 1}, {3}));
  CHECK(caught([&] { asked.session.predict(with_factor); }).code()
        == errc::invalid_argument);
  auto second = asked.session.predict(numbers({2}));
  const auto got = values_in(first.get().outputs.at(asked.output));
  CHECK(got == std::vector<float>{1});
  CHECK_NOTHROW(second.get());
}

TEST_CASE("values that make a step fail cost only their own request") {
  auto made = table();
  const auto options = asking_for(made, 3, never);
  session_of asked{std::move(made), options};
  const auto id = [](std::int64_t value) {
    return fed<std::int64_t>("id", {1, 1}, {value});
  };
  for (int round = 0; round < 3; ++round) {
    auto before = asked.session.predict(id(1));
    auto bad = asked.session.predict(id(99));
    auto after = asked.session.predict(id(1));
    CHECK(caught([&] { bad.get(); }).code() == errc::out_of_range);
    const auto row = values_in(before.get().outputs.at(asked.output));
    CHECK(row.size() == 2);
    CHECK(values_in(after.get().outputs.at(asked.output)) == row);
  }
}

TEST_CASE("steps that begin behind a failing one are not lost") {
  auto made = table();
  auto options = asking_for(made, 1);
  options.executor.steps_in_flight = 4;
  session_of asked{std::move(made), options};
  std::vector<std::future<prediction>> answers;
  for (std::int64_t i = 0; i < 400; ++i)
    answers.push_back(asked.session.predict(
      fed<std::int64_t>("id", {1, 1}, {i % 5 ? i % 10 : 99})));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    CAPTURE(i);
    if (i % 5)
      CHECK_NOTHROW(answers[i].get());
    else
      CHECK(caught([&] { answers[i].get(); }).code() == errc::out_of_range);
  }
}

TEST_CASE("a program whose outputs or feeds lack the batch is refused") {
  graph::network net;
  const auto x = net.data("x", {-1, 1});
  const asked_program mean{net, graph::layers::mean(x)};
  const auto start = [](const asked_program& asked, std::int64_t max_batch) {
    inference_session session{asked.test, asked.parameters,
                              asking_for(asked, max_batch)};
  };
  const auto why = caught([&] { start(mean, 64); });
  CHECK(why.code() == errc::invalid_argument);
  CHECK(why.where().variable == mean.output);
  CHECK(says(why, "without the batch on axis 0"));
  graph::network whole;
  const asked_program fixed{whole,
                            graph::layers::scale(whole.data("x", {4, 1}), {})};
  CHECK(caught([&] { start(fixed, 64); }).where().variable == "x");
  CHECK_NOTHROW(start(mean, 1));
  session_of alone{mean, asking_for(mean, 1)};
  CHECK(alone.ask(numbers({1, 3})) == std::vector<float>{2});
}

TEST_CASE("an output whose axis 0 counts something else is refused, with an "
          "example before the first request") {
  graph::network net;
  const auto x = net.data("x", {-1, 2});
  const asked_program flat{net, graph::layers::reshape(x, {-1, 1})};
  auto options = asking_for(flat);
  session_of asked{flat, options};
  const auto pair = fed<float>("x", {1, 2}, {1, 2});
  CHECK(caught([&] { asked.ask(pair); }).code() == errc::shape_mismatch);
  options.example = share_batch(pair);
  CHECK(caught([&] {
          session_of{flat, options};
        })
          .where()
          .variable
        == flat.output);
}

TEST_CASE("an example is run before the first request") {
  auto made = multiplier();
  auto options = asking_for(made, 8);
  std::atomic<int> runs{0};
  auto kernels = std::make_shared<kernel_table>(cpu_kernels());
  const auto type = made.test.main().ops.front().type;
  const auto inner = std::make_shared<const kernel_table>(*kernels);
  struct counting : kernel {
    std::unique_ptr<kernel> inside;
    std::atomic<int>* runs;
    void run(kernel_context& ctx) override {
      ++*runs;
      inside->run(ctx);
    }
  };
  kernels->add(type, device_kind::cpu, [&, inner, type](auto& attributes) {
    auto made_kernel = std::make_unique<counting>();
    made_kernel->inside = inner->make(type, device_kind::cpu, attributes);
    made_kernel->runs = &runs;
    return made_kernel;
  });
  options.executor.kernels = kernels;
  options.example = share_batch(numbers({1, 2}));
  session_of asked{std::move(made), options};
  CHECK(runs == 4); // alone and four times, once for each step in flight
  CHECK(asked.session.counts().steps == 0);
  options.example = share_batch(fed<float>("x", {1, 2}, {1, 2}));
  CHECK(caught([&] {
          session_of{multiplier(), options};
        }).code()
        == errc::shape_mismatch);
}

TEST_CASE("each request that waits when the session ends gets one error") {
  std::vector<std::future<prediction>> futures;
  std::atomic<int> calls{0};
  {
    auto asked = multiplying(64, never);
    for (int i = 0; i < 10; ++i)
      futures.push_back(asked.session.predict(numbers({1})));
    for (int i = 0; i < 10; ++i)
      asked.session.predict(numbers({1}), [&](const prediction_outcome& o) {
        calls += o.failure && o.failure->code() == errc::cancelled;
      });
  }
  CHECK(calls == 10);
  for (auto& f : futures)
    CHECK(caught([&] { f.get(); }).code() == errc::cancelled);
}

TEST_CASE("a session ends while requests of other threads come") {
  auto made = multiplier();
  auto options = asking_for(made, 4);
  for (int round = 0; round < 20; ++round) {
    auto asked =
      std::make_unique<inference_session>(made.test, made.parameters, options);
    std::vector<std::future<prediction>> futures;
    for (int i = 0; i < 50; ++i)
      futures.push_back(asked->predict(numbers({float(i)})));
    asked = nullptr;
    for (std::size_t i = 0; i < futures.size(); ++i)
      try {
        const auto got = futures[i].get().outputs.at(made.output);
        CHECK(values_in(got) == std::vector<float>{float(i)});
      } catch (const error& why) {
        CHECK(why.code() == errc::cancelled);
      }
  }
}

TEST_CASE("requests that are too many are refused at once") {
  auto asked = multiplying(64, never, 2);
  auto first = asked.session.predict(numbers({1}));
  auto second = asked.session.predict(numbers({1}));
  CHECK(caught([&] { asked.session.predict(numbers({1})); }).code()
        == errc::busy);
  const auto counts = asked.session.counts();
  CHECK(counts.requests == 2);
  CHECK(counts.refused == 1);
  CHECK(counts.waiting == 2);
}

TEST_CASE("new parameters answer what comes later, old ones what waits") {
  auto asked = multiplying(1);
  CHECK(asked.ask(numbers({2})) == std::vector<float>{2});
  auto other = multiplier(10);
  other.parameters.steps = 7;
  asked.session.replace_parameters(other.parameters);
  const auto later = asked.session.predict(numbers({2})).get();
  CHECK(later.steps == 7);
  CHECK(values_in(later.outputs.at(asked.output)) == std::vector<float>{20});
  CHECK(caught([&] { asked.session.replace_parameters({}); }).code()
        == errc::invalid_argument);
  CHECK(asked.ask(numbers({2})) == std::vector<float>{20});

  auto slow = multiplying(2, never);
  auto waits = slow.session.predict(numbers({2}));
  slow.session.replace_parameters(other.parameters);
  auto newer = slow.session.predict(numbers({2})); // full, but not one step
  CHECK(waits.get().steps == 0);
  auto last = slow.session.predict(numbers({2}));
  CHECK(newer.get().steps == 7);
  CHECK(last.get().steps == 7);
}

TEST_CASE("a function that gets an answer can ask again") {
  auto asked = multiplying();
  std::promise<float> done;
  std::function<void(float)> ask_next = [&](float x) {
    asked.session.predict(numbers({x}), [&, x](const prediction_outcome& o) {
      const auto got = values_in(o.answer.outputs.at(asked.output)).front();
      if (got != x || x == 100)
        done.set_value(got);
      else
        ask_next(x + 1);
    });
  };
  ask_next(1);
  CHECK(done.get_future().get() == 100);
}

TEST_CASE("a function that gets an answer can replace the parameters") {
  const auto other = multiplier(10);
  for (const bool warms_up : {false, true}) {
    auto made = multiplier();
    auto options = asking_for(made);
    if (warms_up)
      options.example = share_batch(numbers({1}));
    session_of asked{std::move(made), options};
    std::promise<void> replaced;
    asked.session.predict(numbers({2}), [&](const prediction_outcome&) {
      CHECK_NOTHROW(asked.session.replace_parameters(other.parameters));
      replaced.set_value();
    });
    replaced.get_future().wait();
    CHECK(asked.ask(numbers({2})) == std::vector<float>{20});
  }
}

TEST_CASE("a request without a function for its answer is refused") {
  auto asked = multiplying();
  CHECK(caught([&] { asked.session.predict(numbers({1}), nullptr); }).code()
        == errc::invalid_argument);
  CHECK(asked.session.counts().requests == 0);
}

TEST_CASE("two sessions of one process have nothing in common") {
  auto twos = multiplier(2), threes = multiplier(3);
  session_of one{twos, asking_for(twos)}, other{threes, asking_for(threes)};
  std::vector<std::future<prediction>> ones, others;
  for (int i = 0; i < 100; ++i) {
    ones.push_back(one.session.predict(numbers({float(i)})));
    others.push_back(other.session.predict(numbers({float(i)})));
  }
  for (std::size_t i = 0; i < ones.size(); ++i) {
    const auto x = static_cast<float>(i);
    CHECK(values_in(ones[i].get().outputs.at(one.output))
          == std::vector<float>{2 * x});
    CHECK(values_in(others[i].get().outputs.at(other.output))
          == std::vector<float>{3 * x});
  }
}

TEST_CASE("a saved program answers as the one that was trained") {
  const temporary_folder folder;
  const auto program = make_line_program();
  auto trained = std::make_shared<scope>();
  run_startup(program.startup, *trained, 3);
  save_program(program, 4, *trained, folder.path() / "net");
  const auto loaded = graph::read_program_folder(folder.path() / "net");
  auto values = std::make_shared<scope>();
  arena memory{make_host_memory_source()};
  graph::load_parameters(loaded.main, folder.path() / "net", *values, memory);
  std::string output;
  for (auto& op : program.test.main().ops)
    if (op.type == "elementwise_sub")
      output = op.only_input("X");
  const predictor_options options{.outputs = {output}};
  inference_session here{program.test, {trained, 0}, options};
  inference_session there{loaded.test.value(), {values, 0}, options};
  const auto ask = [&](inference_session& session) {
    return values_in(session.predict(numbers({1, 2})).get().outputs.at(output));
  };
  CHECK(ask(there) == ask(here));
}

TEST_CASE("a program that was saved for inference is loaded from two files") {
  // As Paddle saves it: ops of feeds and fetches, and these parameters only.
  const auto asked = multiplier(3);
  auto program = asked.test;
  auto& block = program.main();
  const auto add = [&](const char* name, graph::var_kind kind) {
    auto& var = block.add_var({.name = name, .kind = kind, .dims = {}});
    var.persistable = true;
  };
  add("feed", graph::var_kind::feed_minibatch);
  add("fetch", graph::var_kind::fetch_list);
  block.ops.insert(block.ops.begin(),
                   {"feed", {{"X", {"feed"}}}, {{"Out", {"x"}}}, {{"col", 0}}});
  block.ops.push_back(
    {"fetch", {{"X", {asked.output}}}, {{"Out", {"fetch"}}}, {{"col", 0}}});
  const temporary_folder folder;
  graph::write_program(program, folder / "model.pdmodel");
  graph::save_parameters(program, *asked.parameters.values,
                         folder / "model.pdiparams");

  const auto loaded = graph::read_program(folder / "model.pdmodel");
  auto values = std::make_shared<scope>();
  arena memory{make_host_memory_source()};
  graph::load_parameters(loaded, folder / "model.pdiparams", *values, memory);
  inference_session session{loaded, {values, 0}, asking_for(asked)};
  const auto answer = session.predict(numbers({1, 2})).get();
  CHECK(values_in(answer.outputs.at(asked.output)) == std::vector<float>{3, 6});
}

TEST_CASE("parameters that are missing are named before a request comes") {
  const auto asked = multiplier();
  const parameter_set none{std::make_shared<scope>(), 0};
  const auto why = caught([&] {
    inference_session{asked.test, none, asking_for(asked)};
  });
  CHECK(why.code() == errc::not_found);
  CHECK(why.where().variable == "factor");
  session_of started{asked, asking_for(asked)};
  CHECK(caught([&] { started.session.replace_parameters(none); }).code()
        == errc::not_found);
  CHECK(started.ask(numbers({2})) == std::vector<float>{2});
}

} // TEST_SUITE("training.inference_session")
