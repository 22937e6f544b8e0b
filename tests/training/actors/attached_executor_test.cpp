// SPDX-License-Identifier: Apache-2.0

// What an application does with the executor inside a trainer or a predictor.

#include <troupe/training/actors/predictor.hpp>
#include <troupe/training/actors/trainer.hpp>

#include <support/files.hpp>
#include <training/actors/asking.hpp>
#include <training/line_program.hpp>
#include <troupe/actors/handles.hpp>
#include <troupe/actors/traced_actor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/trace/trace_reader.hpp>

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("training.attached_executor") {

namespace {

/// Runs a function when it is destroyed.
class at_end {
public:
  explicit at_end(std::function<void()> what) : what_(std::move(what)) {}
  ~at_end() { what_(); }
  at_end(const at_end&) = delete;
  at_end& operator=(const at_end&) = delete;

private:
  std::function<void()> what_;
};

/// `square` waits until the gate is open.
class gated_square final : public kernel {
public:
  explicit gated_square(std::shared_future<void> gate)
    : gate_(std::move(gate)) {}

  void run(kernel_context& ctx) override {
    gate_.wait();
    const auto x = ctx.input("X");
    auto out = ctx.output("Out", x.dims(), x.type());
    std::transform(x.data<float>(), x.data<float>() + x.numel(),
                   out.data<float>(), [](float v) { return v * v; });
  }

private:
  std::shared_future<void> gate_;
};

std::shared_ptr<const kernel_table>
kernels_with_gate(const std::shared_future<void>& gate) {
  auto table = std::make_shared<kernel_table>(cpu_kernels());
  table->add("square", device_kind::cpu, [gate](const attribute_map&) {
    return std::make_unique<gated_square>(gate);
  });
  return table;
}

/// The name of the op of that type on a device.
std::string name_of_op(const executor& exe, std::string_view type,
                       std::uint32_t device = 0) {
  const auto& g = exe.graph();
  const auto found = std::ranges::find_if(g.ops, [=](const auto& op) {
    return op.desc->type == type && op.device == device;
  });
  REQUIRE(found != g.ops.end());
  return graph::handle_name(g, found->id);
}

bool begins_with(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}

// CAF's clock holds on to the sender of a request until its timeout. These have
// none, so that they end when nobody knows them.

/// Sends on what it is asked to train.
caf::behavior desk(caf::event_based_actor* me, const trainer& to) {
  return {[me, to](const train_batch& batch) {
    auto promise = me->make_response_promise();
    me->request(to, caf::infinite, batch)
      .then(
        [promise](const trained_step& step) mutable { promise.deliver(step); },
        [promise](const caf::error& why) mutable { promise.deliver(why); });
    return promise;
  }};
}

/// Finds a handle of a trainer or a predictor, and asks it how it is.
template <class Handle>
caf::behavior looker(caf::event_based_actor* me, const Handle& inside) {
  return {[me, inside](const std::string& name) {
    auto promise = me->make_response_promise();
    const auto refuse = [promise](const caf::error& why) mutable {
      promise.deliver(why);
    };
    me->request(inside, caf::infinite, ask_handle{name})
      .then(
        [me, promise, refuse](const caf::actor& handle) {
          me->request(handle, caf::infinite, actors::describe_atom_v)
            .then([promise](
                    const std::string& text) mutable { promise.deliver(text); },
                  refuse);
        },
        refuse);
    return promise;
  }};
}

struct bench : line_batches {
  host_application app;
  caf::scoped_actor self{*app.system};
  training_program program = make_line_program();
  trainer_options options;

  train_batch next(std::uint64_t number) {
    return {share_batch(batch(number))};
  }
  trainer start() { return spawn_trainer(*app.system, program, options); }
};

/// Predictors of the line's distance, squared.
struct served : bench {
  predictor_options how;
  std::string output;

  served() {
    for (auto& op : program.test.main().ops)
      if (op.type == "square")
        output = op.only_output("Out");
    how.outputs = {output};
  }
  parameter_set parameters(std::uint64_t steps) const {
    auto values = std::make_shared<scope>();
    run_startup(program.startup, *values);
    return {values, steps};
  }
  std::uint64_t steps_of_answer(const predictor& from) {
    return ask<prediction>(self, from, predict_batch{share_batch(batch(0))})
      .get()
      .steps;
  }
};

} // namespace

TEST_CASE_FIXTURE(bench, "a watchdog tells what the step of a trainer waits "
                         "for") {
  struct told {
    std::once_flag once;
    std::promise<std::string> text;
  };
  std::promise<void> gate;
  const auto first = std::make_shared<told>();
  auto& executor_of_it = options.session.executor;
  executor_of_it.kernels = kernels_with_gate(gate.get_future().share());
  executor_of_it.attach = [first](executor& exe) {
    return std::make_shared<step_watchdog>(
      exe, std::chrono::milliseconds{20}, [first](const std::string& text) {
        std::call_once(first->once, [&] { first->text.set_value(text); });
      });
  };
  const auto to = start();
  auto step = self->request(to, patience, next(0));
  const auto text = first->text.get_future().get();
  CAPTURE(text);
  CHECK(text.find("step 0 has not ended") != text.npos);
  CHECK(text.find("square#") != text.npos);
  gate.set_value();
  step.receive([](const trained_step&) {},
               [](const caf::error& why) { FAIL(text_of(why)); });
}

TEST_CASE_FIXTURE(bench,
                  "an actor of the application is in one trace with the ops of "
                  "its trainer") {
  const temporary_folder folder;
  const auto file = folder / "run.trt";
  std::shared_ptr<recorder> events;
  const auto ended = std::make_shared<std::promise<void>>();
  options.session.executor.attach = [&events, file, ended](executor& exe) {
    events = exe.shared_trace();
    exe.start_trace({.file = file.string()});
    return std::make_shared<at_end>([&exe, ended] {
      exe.stop_trace();
      ended->set_value();
    });
  };
  const auto to = start();
  const auto sends = app.system->spawn<traced_function>(
    events, "desk", [to](caf::event_based_actor* me) { return desk(me, to); });
  CHECK(ask<trained_step>(self, sends, next(0)).get().step == 0);
  CHECK(ask<trainer_state>(self, to, stop_training{}).get().steps == 1);
  ended->get_future().wait();
  const auto t = trace::read_trace(file);
  CHECK(t.is_complete);
  const auto count = [&](event_kind kind) {
    return std::ranges::count(t.events, kind, &trace_event::kind);
  };
  CHECK(count(event_kind::step_end) == 1);
  CHECK(count(event_kind::mail) == 2); // the batch, and the trainer's answer
  CHECK(std::ranges::any_of(t.graph.handles, [](const auto& handle) {
    return begins_with(handle.name, "square#");
  }));
  const auto has_actor = [&](std::string_view name) {
    for (actor_number i = 0; i < t.actors.size(); ++i)
      if (begins_with(t.name_of_actor(i), name))
        return true;
    return false;
  };
  CHECK(has_actor("desk#"));
  CHECK(has_actor("trainer#"));
}

TEST_CASE_FIXTURE(bench, "an actor of the application finds the ops of a "
                         "trainer by name") {
  options.session.executor.devices = parse_devices("cpu:2");
  std::string name, other;
  options.session.executor.attach = [&](executor& exe) {
    name = name_of_op(exe, "square");
    other = name_of_op(exe, "square", 1);
    return nullptr;
  };
  const auto to = start();
  const auto looks = app.system->spawn(looker<trainer>, to);
  const auto text = ask<std::string>(self, looks, name).get();
  CAPTURE(text);
  CHECK(text.find(name) != text.npos);
  CHECK(ask<std::string>(self, looks, other).get().find(other) != text.npos);
  const auto unknown = ask<std::string>(self, looks, std::string{"square"});
  CHECK(code_of(unknown.failure) == errc::not_found);
  CHECK_FALSE(tell(self, to, pause_training{})); // it answers all the same
  const auto handle = ask<caf::actor>(self, to, ask_handle{name}).get();
  self->monitor(handle);
  ask<trainer_state>(self, to, stop_training{}).get();
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == handle.address());
    CHECK(down.reason == caf::exit_reason::user_shutdown);
  });
}

TEST_CASE_FIXTURE(served, "what is attached to a predictor comes with each set "
                          "of parameters, and leaves with it") {
  struct counts {
    std::atomic<int> came{0}, left{0};
  };
  const auto seen = std::make_shared<counts>();
  how.executor.attach = [seen](executor&) {
    ++seen->came;
    return std::make_shared<at_end>([seen] { ++seen->left; });
  };
  const auto answers =
    spawn_predictor(*app.system, program.test, parameters(0), how);
  CHECK(seen->came == 1);
  CHECK(steps_of_answer(answers) == 0);
  CHECK_FALSE(tell(self, answers, parameters(7)));
  CHECK(seen->came == 2);
  CHECK(seen->left == 1);
  CHECK(steps_of_answer(answers) == 7);
}

TEST_CASE_FIXTURE(served, "an actor of the application finds the ops of a "
                          "predictor by name, until other parameters come") {
  std::string name;
  how.executor.attach = [&name](executor& exe) {
    name = name_of_op(exe, "square");
    return nullptr;
  };
  const auto answers =
    spawn_predictor(*app.system, program.test, parameters(0), how);
  const auto looks = app.system->spawn(looker<predictor>, answers);
  CHECK(ask<std::string>(self, looks, name).get().find(name)
        != std::string::npos);
  CHECK(code_of(ask<caf::actor>(self, answers, ask_handle{"none"}).failure)
        == errc::not_found);
  const auto before = ask<caf::actor>(self, answers, ask_handle{name}).get();
  self->monitor(before);
  CHECK_FALSE(tell(self, answers, parameters(7)));
  self->receive([&](const caf::down_msg& down) {
    CHECK(down.source == before.address());
    CHECK(down.reason == caf::exit_reason::user_shutdown);
  });
  const auto after = ask<caf::actor>(self, answers, ask_handle{name}).get();
  CHECK(after != before);
}

TEST_CASE_FIXTURE(served, "a predictor that is told to stop answers the step "
                          "that runs before it ends") {
  std::promise<void> gate;
  const auto open = gate.get_future().share();
  how.executor.kernels = kernels_with_gate(open);
  const auto answers =
    spawn_predictor(*app.system, program.test, parameters(7), how);
  auto runs =
    self->request(answers, patience, predict_batch{share_batch(batch(0))});
  // Sees the request of the step, which has begun.
  while (ask<prediction_counts>(self, answers, ask_state{}).get().waiting > 0)
    ;
  auto stops = self->request(answers, patience, stop_predicting{});
  const auto late =
    ask<prediction>(self, answers, predict_batch{share_batch(batch(0))});
  CHECK(code_of(late.failure) == errc::cancelled);
  CHECK(code_of(ask<caf::actor>(self, answers, ask_handle{"any"}).failure)
        == errc::cancelled);
  CHECK(code_of(tell(self, answers, parameters(8))) == errc::cancelled);
  gate.set_value();
  runs.receive([](const prediction& got) { CHECK(got.steps == 7); },
               [](const caf::error& why) { FAIL(text_of(why)); });
  stops.receive([](const prediction_counts& last) { CHECK(last.steps == 1); },
                [](const caf::error& why) { FAIL(text_of(why)); });
}

TEST_CASE_FIXTURE(served, "the trace of a predictor is that of its first "
                          "parameters") {
  const temporary_folder folder;
  const auto file = folder / "run.trt";
  how.executor.trace.emplace();
  how.executor.trace->file = file.string();
  const auto answers =
    spawn_predictor(*app.system, program.test, parameters(0), how);
  steps_of_answer(answers);
  steps_of_answer(answers);
  CHECK_FALSE(tell(self, answers, parameters(7)));
  CHECK(steps_of_answer(answers) == 7);
  const auto t = trace::read_trace(file);
  CHECK(t.is_complete);
  CHECK(std::ranges::count(t.events, event_kind::step_end, &trace_event::kind)
        == 2);
}

} // TEST_SUITE("training.attached_executor")
