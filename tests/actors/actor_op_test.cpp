// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/actor_op.hpp>

#include <actors/application.hpp>
#include <support/caught.hpp>
#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>

#include <caf/actor_registry.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.actor_op") {

namespace {

// A limit that only a hanging test reaches.
constexpr std::chrono::seconds patience{100};

using host_ptr = std::shared_ptr<arena>;

/// Twice the input.
tensor doubled(const tensor& x, arena& memory) {
  auto y = tensor::make(memory, x.dims(), dtype::float32);
  for (std::size_t i = 0; i < x.values<float>().size(); ++i)
    y.values<float>()[i] = 2 * x.values<float>()[i];
  return y;
}

op_outputs doubled_answer(const op_request& request, arena& memory) {
  return {{{"Out", {doubled(request.question->inputs.at("X")[0], memory)}}}};
}

caf::behavior doubler(caf::event_based_actor*, const host_ptr& memory) {
  return {[memory](const op_request& request) {
    return doubled_answer(request, *memory);
  }};
}

/// out = asked(x), where an application computes the op "asked"; beside it, an
/// op "beside" that reads x too.
struct asking_net {
  graph::network net;
  std::string out = "asked_out", beside = "beside_out";
  const std::vector<std::string> wanted{out}, both{out, beside};

  asking_net() {
    net.data("x", {-1, 2});
    add("asked", out);
    add("beside", beside);
  }

  void add(const char* type, const std::string& output) {
    net.temporary(output);
    graph::op_desc op;
    op.type = type;
    op.set_input("X", {"x"});
    op.set_output("Out", {output});
    net.main.main().ops.push_back(op);
    auto& declared = *net.main.main().find_var(output);
    declared.dims = {-1, 2};
    declared.type = dtype::float32;
  }
};

struct run_of_it : asking_net {
  application app;
  host_ptr memory = std::make_shared<arena>(make_host_memory_source());
  std::atomic<int> beside_ran{0};

  executor_options options(std::shared_ptr<outside_op> asked,
                           const char* devices = "cpu:2") {
    executor_options made;
    made.devices = parse_devices(devices);
    made.system = &app.system;
    made.fetches = {out, beside};
    made.outside_ops = {{"asked", std::move(asked)}};
    auto kernels = std::make_shared<kernel_table>(cpu_kernels());
    kernels->add("beside", device_kind::cpu, [this](const attribute_map&) {
      return std::make_unique<counting_kernel>(beside_ran);
    });
    made.kernels = kernels;
    return made;
  }
  feed_map batch(std::int64_t samples, float value) {
    auto x = tensor::make(*memory, {samples, 2}, dtype::float32);
    for (auto& v : x.values<float>())
      v = value;
    return {{"x", x}};
  }

private:
  struct counting_kernel final : kernel {
    explicit counting_kernel(std::atomic<int>& ran) : ran_(ran) {}
    void run(kernel_context& ctx) override {
      const auto x = ctx.input("X");
      auto y = ctx.output("Out", x.dims(), x.type());
      std::ranges::copy(x.values<float>(), y.values<float>().begin());
      ++ran_;
    }
    std::atomic<int>& ran_;
  };
};

} // namespace

TEST_CASE_FIXTURE(run_of_it,
                  "an actor's answer is the output of its op, on each "
                  "device and in each step") {
  const auto actor = app.system.spawn(doubler, memory);
  executor exe{net.main, options(make_actor_op(app.system, actor, patience))};
  CHECK(exe.stats().pending_ops >= 2);
  std::vector<step_id> ids;
  for (int i = 0; i < 10; ++i) {
    const auto result = exe.run(batch(3, static_cast<float>(i)), wanted);
    const auto got = result.merged(out);
    CHECK(got.dims() == shape{3, 2});
    for (auto v : got.values<float>())
      CHECK(v == 2 * static_cast<float>(i));
  }
}

TEST_CASE_FIXTURE(run_of_it, "a device without samples asks nobody") {
  const auto actor = app.system.spawn(doubler, memory);
  executor exe{net.main, options(make_actor_op(app.system, actor, patience))};
  CHECK(exe.run(batch(1, 4), wanted).merged(out).values<float>()[0] == 8);
}

TEST_CASE_FIXTURE(run_of_it,
                  "an op that waits for its actor does not hold back "
                  "ops beside it, even on one device and one stream") {
  // The actor answers only when the op beside has run.
  auto* const ran = &beside_ran;
  const auto patient = app.system.spawn(
    [](caf::event_based_actor* self, std::atomic<int>* other,
       const host_ptr& host) -> caf::behavior {
      struct waiting {
        op_request request;
        caf::typed_response_promise<op_outputs> promise;
      };
      auto one = std::make_shared<waiting>();
      return {[=](const op_request& request) {
                *one = {request, self->make_response_promise<op_outputs>()};
                self->send(self, 0);
                return one->promise;
              },
              [=](int) {
                if (*other > 0)
                  one->promise.deliver(doubled_answer(one->request, *host));
                else
                  self->delayed_send(self, std::chrono::milliseconds{1}, 0);
              }};
    },
    ran, memory);
  executor exe{net.main,
               options(make_actor_op(app.system, patient, patience), "cpu")};
  const auto result = exe.run(batch(2, 1), both);
  CHECK(result.merged(out).values<float>()[0] == 2);
  CHECK(beside_ran == 1);
}

TEST_CASE_FIXTURE(run_of_it,
                  "an actor that is gone, answers with an error, with "
                  "too little or too late fails the step, and no more") {
  const auto gone = app.system.spawn(doubler, memory);
  {
    caf::scoped_actor self{app.system};
    self->send_exit(gone, caf::exit_reason::kill);
    self->wait_for(gone);
  }
  const auto failing =
    app.system.spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](const op_request&) -> caf::result<op_outputs> {
        return caf::sec::runtime_error;
      }};
    });
  const auto lacking =
    app.system.spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](const op_request&) { return op_outputs{}; }};
    });
  // A promise that is dropped is an answer with CAF 1.x.
  using promise = caf::typed_response_promise<op_outputs>;
  const auto kept = std::make_shared<std::vector<promise>>();
  const auto silent =
    app.system.spawn([kept](caf::event_based_actor* self) -> caf::behavior {
      return {[=](const op_request&) {
        kept->push_back(self->make_response_promise<promise>());
        return kept->back();
      }};
    });
  const auto error_of = [&](const caf::actor& whom,
                            std::chrono::milliseconds limit) {
    executor exe{net.main, options(make_actor_op(app.system, whom, limit))};
    const auto why = caught([&] { exe.run(batch(2, 1)); });
    CHECK(why.where().op_type == "asked");
    CHECK(caught([&] { exe.run(batch(2, 1)); }).code() == why.code());
    return why;
  };
  CHECK(says(error_of(gone, patience), "the op's actor is gone"));
  CHECK(says(error_of(failing, patience),
             "the op's actor has answered with an error"));
  CHECK(says(error_of(lacking, patience), "the answer lacks output Out[0]"));
  CHECK(says(error_of(silent, std::chrono::milliseconds{1}),
             "the op's actor has not answered for 1 ms"));
  kept->clear(); // they keep the actor alive
}

TEST_CASE_FIXTURE(run_of_it, "an actor can be known by its name alone") {
  executor exe{net.main, options(make_actor_op(app.system, "twice", patience))};
  const auto nobody = caught([&] { exe.run(batch(2, 1)); });
  CHECK(nobody.code() == errc::peer_failure);
  const auto actor = app.system.spawn(doubler, memory);
  actors::put_named(app.system, "twice",
                    caf::actor_cast<caf::strong_actor_ptr>(actor));
  CHECK(exe.run(batch(2, 3), wanted).merged(out).values<float>()[0] == 6);
  actors::forget_named(app.system, "twice");
}

TEST_CASE_FIXTURE(run_of_it,
                  "an answer of another shape or dtype than declared is an "
                  "error of the op") {
  const auto answer_to_one_sample = [&](const shape& dims, dtype type) {
    const auto wrong =
      app.system.spawn([=, this](caf::event_based_actor*) -> caf::behavior {
        return {[=, this](const op_request&) {
          return op_outputs{{{"Out", {tensor::make(*memory, dims, type)}}}};
        }};
      });
    executor exe{net.main, options(make_actor_op(app.system, wrong, patience))};
    return caught([&] { exe.run(batch(1, 1)); });
  };
  const auto shaped = answer_to_one_sample({1, 3}, dtype::float32);
  CHECK(shaped.code() == errc::shape_mismatch);
  CHECK(shaped.where().op_type == "asked");
  const auto typed = answer_to_one_sample({1, 2}, dtype::int64);
  CHECK(typed.code() == errc::dtype_mismatch);
  CHECK(typed.where().op_type == "asked");
}

} // TEST_SUITE("actors.actor_op")
