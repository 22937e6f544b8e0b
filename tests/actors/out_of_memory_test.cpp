// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.out_of_memory") {

namespace {

constexpr long plenty = 1L << 40;

/// How often an executor's devices can still get memory from the system.
struct ration {
  std::atomic<long> left{plenty};

  bool take() noexcept { return left.fetch_sub(1) > 0; }
};

class rationed_source final : public memory_source {
public:
  explicit rationed_source(ration& r) : ration_(r) {}

  std::byte* allocate(std::size_t bytes) noexcept override {
    return ration_.take() ? host_->allocate(bytes) : nullptr;
  }
  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    host_->deallocate(data, bytes);
  }
  bool resize(std::byte* data, std::size_t bytes,
              std::size_t wanted) noexcept override {
    return (wanted < bytes || ration_.take())
           && host_->resize(data, bytes, wanted);
  }

private:
  ration& ration_;
  std::unique_ptr<memory_source> host_ = make_host_memory_source();
};

/// A CPU device whose memory is rationed.
class rationed_device final : public device {
public:
  rationed_device(int index, ration& r)
    : cpu_(make_cpu_device(index)),
      memory_(std::make_unique<rationed_source>(r)) {}

  device_id id() const noexcept override { return cpu_->id(); }
  arena& memory() noexcept override { return memory_; }
  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return cpu_->make_stream(options);
  }
  tensor to_host(const tensor& value, arena& host, stream&) override {
    return clone(value, host);
  }
  tensor to_device(const tensor& host_value, stream&) override {
    return clone(host_value, memory_);
  }

private:
  std::unique_ptr<device> cpu_;
  arena memory_;
};

executor_options rationed_options(const small_net& net, int devices,
                                  graph::merge_strategy strategy, ration& r) {
  executor_options o;
  o.devices = parse_devices("cpu:" + std::to_string(devices));
  for (int d = 0; d < devices; ++d)
    o.hooks.device_instances.push_back(std::make_shared<rationed_device>(d, r));
  o.strategy = strategy;
  o.parameters = net.parameters();
  return o;
}

/// Undoes the updates that ops of a failed step have done.
void set_parameters(executor& exe, const small_net& net) {
  const auto initial = net.parameters();
  arena memory{make_host_memory_source()}; // its blocks outlive it
  for (std::size_t d = 0; d < exe.graph().devices.size(); ++d)
    for (auto& name : initial->names())
      if (auto* held = exe.parameters().replica(d).find(name);
          held && held->has_value())
        held->set(clone(initial->find(name)->as_tensor(), memory));
}

std::vector<double> two_losses(executor& exe, const small_net& net) {
  const auto first = exe.run(net.batch(0, 6)).loss;
  return {first, exe.run(net.batch(1, 6)).loss};
}

/// Runs a step whose devices get memory at most `most` times. False if that was
/// enough.
bool runs_short(executor& exe, const small_net& net, ration& r, long most) {
  r.left = most;
  std::optional<error> failure;
  try {
    exe.run(net.batch(0, 6));
  } catch (const error& e) {
    failure = e;
  }
  r.left = plenty;
  if (failure)
    CHECK(failure->code() == errc::out_of_memory);
  return failure.has_value();
}

/// The same for two steps that may overlap. Each one that fails ran out of
/// memory or was cancelled.
bool two_run_short(executor& exe, const small_net& net, ration& r, long most) {
  r.left = most;
  std::vector<step_id> under_way;
  std::vector<errc> failures;
  const auto note = [&](auto&& act) {
    try {
      act();
    } catch (const error& e) {
      failures.push_back(e.code());
    }
  };
  for (int i = 0; i < 2; ++i)
    note([&] { under_way.push_back(exe.submit(net.batch(0, 6))); });
  for (auto step : under_way)
    note([&] { exe.wait(step); });
  r.left = plenty;
  for (auto code : failures)
    CHECK((code == errc::out_of_memory || code == errc::cancelled));
  return !failures.empty();
}

/// Repeats the first steps: in attempt k, only k reservations of memory
/// succeed. Returns the number of reservations that the steps need.
template <class Attempt>
long fail_each_reservation(const small_net& net, int devices,
                           graph::merge_strategy strategy, Attempt attempt) {
  ration free;
  executor undisturbed{net.main,
                       rationed_options(net, devices, strategy, free)};
  const auto expected = two_losses(undisturbed, net);
  for (long k = 0;; ++k) {
    CAPTURE(k);
    ration r;
    executor exe{net.main, rationed_options(net, devices, strategy, r)};
    if (!attempt(exe, net, r, k))
      return k;
    set_parameters(exe, net);
    CHECK(two_losses(exe, net) == expected);
  }
}

} // namespace

TEST_CASE("a step that runs out of memory fails, and the next one succeeds") {
  for (auto& net : {make_mlp(), make_word2vec()})
    for (auto [devices, strategy] :
         {std::pair{1, graph::merge_strategy::all_reduce},
          std::pair{2, graph::merge_strategy::all_reduce},
          std::pair{2, graph::merge_strategy::reduce}}) {
      CAPTURE(net.name);
      CAPTURE(devices);
      CAPTURE(to_string(strategy));
      CHECK(fail_each_reservation(net, devices, strategy, runs_short) > 3);
    }
}

TEST_CASE("two overlapping steps end when memory runs out") {
  const auto net = make_mlp();
  for (int devices : {1, 2}) {
    CAPTURE(devices);
    CHECK(fail_each_reservation(net, devices, graph::merge_strategy::all_reduce,
                                two_run_short)
          > 3);
  }
}

TEST_CASE("an executor can be destroyed after a feed ran out of memory") {
  const auto net = make_mlp();
  ration r;
  executor exe{net.main,
               rationed_options(net, 2, graph::merge_strategy::all_reduce, r)};
  r.left = 0;
  const auto e = caught([&] { exe.submit(net.batch(0, 6)); });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(e.where().variable == "image");
  CHECK(e.where().device == "cpu:0");
}

TEST_CASE("a feed that runs out of memory sets no persistable variable") {
  const auto net = make_mlp();
  arena memory{make_host_memory_source()};
  auto rate = tensor::make(memory, {1}, dtype::float32);
  rate.data<float>()[0] = 7;
  for (long k = 0; k < 6; ++k) { // three feeds, two devices
    CAPTURE(k);
    ration r;
    auto options =
      rationed_options(net, 2, graph::merge_strategy::all_reduce, r);
    options.lowering.share_parameters = false;
    executor exe{net.main, options};
    auto feeds = net.batch(0, 6);
    feeds.emplace("learning_rate_0", rate);
    r.left = k;
    CHECK(caught([&] { exe.run(feeds); }).code() == errc::out_of_memory);
    for (std::size_t d = 0; d < 2; ++d)
      CHECK(exe.parameters()
              .replica(d)
              .find("learning_rate_0")
              ->as_tensor()
              .data<float>()[0]
            != 7);
  }
}

} // TEST_SUITE("actors.out_of_memory")
