// SPDX-License-Identifier: Apache-2.0
#include <actors/backend/cuda/cuda_options.hpp>
#include <actors/small_nets.hpp>
#include <kernels/cuda/cuda_rig.hpp>
#include <support/caught.hpp>
#include <support/long_run.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/executor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

using test::caught;
using test::make_pretend_driver;
using test::mishap;
using test::on_cuda;
using test::pretend_driver;
using test::says;

TEST_SUITE("actors.backend.cuda_failures") {

namespace {

std::vector<double> two_losses(executor& exe, const test::small_net& net) {
  const auto first = exe.run(net.batch(0, 7)).loss;
  return {first, exe.run(net.batch(1, 7)).loss};
}

/// Gives the devices the parameters that they had at first.
void set_parameters(executor& exe, const test::small_net& net,
                    const std::vector<std::shared_ptr<device>>& devices) {
  const auto initial = net.parameters();
  for (std::size_t d = 0; d < devices.size(); ++d)
    for (auto& name : initial->names())
      if (auto* held = exe.parameters().replica(d).find(name);
          held && held->has_value())
        held->set(devices[d]->to_device(initial->find(name)->as_tensor()));
}

/// Runs a step in which a call of the driver goes wrong. Returns how many calls
/// could have.
std::uint64_t run_with(mishap what, std::uint64_t k, pretend_driver& api,
                       executor& exe, const test::small_net& net) {
  api.set(what, k);
  std::optional<error> failure;
  try {
    exe.run(net.batch(0, 7));
  } catch (const error& e) {
    failure = e;
  }
  const auto calls = api.calls();
  api.set(mishap::none, 0);
  if (failure)
    CHECK_MESSAGE((failure->code() == errc::kernel_failure
                   || failure->code() == errc::out_of_memory
                   || failure->code() == errc::peer_failure),
                  failure->what());
  return calls;
}

struct machine {
  executor_options options(std::shared_ptr<pretend_driver> api) const {
    auto made = on_cuda(std::move(api), devices);
    if (!merges_as_one)
      made.lowering.fuse_all_reduce_bytes = 0;
    return made;
  }

  int devices = 1;
  bool has_nccl = true;
  bool merges_as_one = true; ///< all gradients
};

/// Lets calls of a step go wrong in turn, each `stride`th one or, in a long
/// run, each one; each time with a new executor. The executor can then train as
/// ever. Returns the number of calls.
std::uint64_t fail_calls(mishap what, const machine& on, std::uint64_t stride) {
  if (test::is_long_run())
    stride = 1;
  const auto net = test::make_mlp();
  constexpr std::uint64_t never = ~std::uint64_t{0};
  const auto untroubled = make_pretend_driver({.has_nccl = on.has_nccl});
  auto undisturbed = on.options(untroubled);
  undisturbed.parameters = net.parameters();
  executor free{net.main, undisturbed};
  const auto calls = run_with(what, never, *untroubled, free, net);
  set_parameters(free, net, undisturbed.hooks.device_instances);
  const auto wanted = two_losses(free, net);
  for (std::uint64_t k = 0; k < calls; k += stride) {
    CAPTURE(k);
    const auto api = make_pretend_driver({.seed = k, .has_nccl = on.has_nccl});
    auto options = on.options(api);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    run_with(what, k, *api, exe, net);
    set_parameters(exe, net, options.hooks.device_instances);
    CHECK(two_losses(exe, net) == wanted);
  }
  return calls;
}

} // namespace

TEST_CASE(
  "a step in which a call of the driver fails ends, and others follow") {
  CHECK(fail_calls(mishap::call_fails, {}, 2) > 50);
  CHECK(fail_calls(mishap::call_fails, {.devices = 2}, 11) > 100);
  CHECK(fail_calls(mishap::call_fails, {.devices = 2, .has_nccl = false}, 19)
        > 100);
}

TEST_CASE("a step that runs out of GPU memory ends, and others follow") {
  CHECK(fail_calls(mishap::no_memory, {}, 1) > 5);
  CHECK(fail_calls(mishap::no_memory, {.devices = 2}, 5) > 10);
  CHECK(fail_calls(mishap::no_memory, {.devices = 2, .has_nccl = false}, 7)
        > 10);
}

TEST_CASE("a step whose merge by NCCL hangs or fails ends, and others follow") {
  const machine on{.devices = 2, .merges_as_one = false};
  CHECK(fail_calls(mishap::merge_hangs, on, 1) > 3);
  CHECK(fail_calls(mishap::merge_never_meets, on, 3) > 3);
  CHECK(fail_calls(mishap::merge_fails, on, 2) > 3);
}

TEST_CASE("what fails a step whose merge hangs names values and ranks") {
  const auto net = test::make_mlp();
  const auto api = make_pretend_driver({.gpus = 3});
  auto options = on_cuda(api, 3);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  api->set(mishap::merge_hangs, 0);
  const auto e = caught([&] { exe.run(net.batch(0, 7)); });
  CHECK(e.code() == errc::peer_failure);
  CHECK_MESSAGE(says(e, "NCCL: all_reduce of "), e.what());
  CHECK(says(e, "@GRAD"));
  CHECK(says(e, "no end within 60000 ms; ranks that came: 0, 1, 2; missing: "
                "none"));
}

TEST_CASE("a step on a GPU that is lost ends with an error that says so") {
  const auto net = test::make_mlp();
  for (std::uint64_t k = 0; k < 200; k += test::is_long_run() ? 1 : 7) {
    CAPTURE(k);
    const auto api = make_pretend_driver({.seed = k});
    auto options = on_cuda(api, 2);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    api->set(mishap::device_lost, k);
    for (int step = 0; step < 2; ++step) {
      const auto e = caught([&] {
        for (int i = 0; i < 20; ++i)
          exe.run(net.batch(0, 7));
      });
      CHECK(says(e, "the device is lost"));
    }
  }
}

TEST_CASE("a kernel that fails on the GPU ends its step with an error") {
  const auto net = test::make_mlp();
  for (std::uint64_t k = 0; k < 40; k += test::is_long_run() ? 1 : 3) {
    CAPTURE(k);
    const auto api = make_pretend_driver({.seed = k});
    auto options = on_cuda(api, 1);
    options.parameters = net.parameters();
    executor exe{net.main, options};
    api->set(mishap::kernel_fails, k);
    CHECK(says(caught([&] {
                 for (int i = 0; i < 3; ++i)
                   exe.run(net.batch(0, 7));
               }),
               "the device is lost"));
  }
}

TEST_CASE("a label that is no class fails the step on a CUDA device") {
  const auto net = test::make_mlp();
  auto options = on_cuda(test::make_test_driver(), 1);
  options.parameters = net.parameters();
  executor exe{net.main, options};
  auto bad = net.batch(0, 7);
  bad["label"].data<std::int64_t>()[3] = 4;
  CHECK(caught([&] { exe.run(bad); }).code() == errc::out_of_range);
  CHECK(std::isfinite(exe.run(net.batch(1, 7)).loss));
}

TEST_CASE(
  "an op without a kernel for CUDA devices is named before the first step") {
  auto program = test::make_mlp().evaluation;
  for (auto& op : program.main().ops)
    if (op.type == "relu")
      op.type = "elu";
  const auto e = caught([&] {
    executor exe{program, on_cuda(test::make_test_driver(), 1)};
  });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(says(e, "elu"));
  CHECK_FALSE(says(e, "mean"));
}

TEST_CASE(
  "a dtype without a kernel for CUDA devices is named before the first step") {
  auto program = test::make_mlp().evaluation;
  for (auto& op : program.main().ops)
    if (op.type == "relu")
      program.main().find_var(op.output("Out").front())->type = dtype::float64;
  const auto e = caught([&] {
    executor exe{program, on_cuda(test::make_test_driver(), 1)};
  });
  CHECK(e.code() == errc::unsupported_op);
  CHECK(says(e, "relu of float64"));
  CHECK_FALSE(says(e, "mean"));
}

TEST_CASE("CUDA devices merge values with no others") {
  const std::vector<device_id> mixed{{device_kind::cpu, 0},
                                     {device_kind::cuda, 0}};
  CHECK(says(caught([&] { merges_by_rank(mixed); }),
             "cuda devices merge values only with others of their kind"));
  CHECK(merges_by_rank(parse_devices("cuda:0,cuda:1")));
  CHECK_FALSE(merges_by_rank(parse_devices("sim:2")));
}

TEST_CASE("values of CUDA devices are not checked on the host") {
  const auto net = test::make_mlp();
  auto options = on_cuda(test::make_test_driver(), 1);
  options.hooks.check_nan = true;
  CHECK(caught([&] {
          executor exe{net.main, options};
        }).code()
        == errc::invalid_argument);
}

} // TEST_SUITE("actors.backend.cuda_failures")

} // namespace troupe
