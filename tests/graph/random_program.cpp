// SPDX-License-Identifier: Apache-2.0
#include "random_program.hpp"

#include <algorithm>

namespace troupe::graph::testing {

namespace {

class dice {
public:
  explicit dice(std::uint64_t seed) : engine_(seed) {}

  std::size_t below(std::size_t n) { return engine_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  names some_of(const names& from, std::size_t at_least, std::size_t at_most) {
    names result;
    auto count = at_least + below(at_most - at_least + 1);
    for (std::size_t i = 0; i < count; ++i)
      result.push_back(from[below(from.size())]);
    return result;
  }

private:
  std::mt19937_64 engine_;
};

/// Writes a training program part by part.
class training_writer {
public:
  explicit training_writer(std::uint64_t seed)
    : dice_(seed), num_parameters_(1 + dice_.below(4)) {}

  small_program write() {
    program_.persistable("lr").persistable("counter").persistable("stats");
    for (std::size_t i = 0; i < num_parameters_; ++i)
      program_.persistable(param(i), {static_cast<int>(1 + dice_.below(9))})
        .persistable(state(i));
    add_forward();
    for (std::size_t i = num_parameters_; i-- > 0;)
      add_backward(i);
    add_shared_updates();
    for (std::size_t i = 0; i < num_parameters_; ++i)
      add_update(i);
    return std::move(program_);
  }

private:
  static std::string param(std::size_t i) { return "p" + std::to_string(i); }
  static std::string state(std::size_t i) { return "s" + std::to_string(i); }
  static std::string grad(std::size_t i) { return gradient_name(param(i)); }

  void add_forward() {
    names read{"x"};
    for (std::size_t i = 0; i < num_parameters_; ++i)
      read.push_back(param(i));
    if (dice_.one_in(6))
      read.push_back(state(dice_.below(num_parameters_)));
    program_.op("forward", read, {"h"});
    if (dice_.one_in(3))
      program_.op("statistics", {"h", "stats"}, {"stats"});
    program_.op("mean", {"h"}, {"loss"}, role_forward | role_loss)
      .loss_gradient("loss");
  }

  void add_backward(std::size_t i) {
    if (dice_.one_in(5))
      program_.op("early", {"h", "loss@GRAD"}, {grad(i)}, role_backward);
    program_.op("backward", {"h", "loss@GRAD", param(i)}, {grad(i)},
                role_backward, {param(i), grad(i)});
    if (dice_.one_in(8))
      program_.op("watch", {grad(i)}, {"watched"}, role_backward);
  }

  void add_shared_updates() {
    if (dice_.one_in(3))
      program_.op("count", {"counter"}, {"counter"}, role_optimize);
    if (dice_.one_in(2))
      program_.op("decay", {"lr"}, {"lr"}, role_lr_sched | role_optimize);
    norm_ = dice_.one_in(3);
    if (!norm_)
      return;
    names grads;
    for (std::size_t i = 0; i < num_parameters_; ++i)
      if (i == 0 || dice_.one_in(2))
        grads.push_back(grad(i));
    program_.op("norm", grads, {"norm"}, role_optimize);
  }

  void add_update(std::size_t i) {
    auto g = grad(i);
    if (dice_.one_in(4)) {
      program_.op("clip", {g}, {g + "@CLIP"}, role_optimize);
      g += "@CLIP";
    }
    names read{param(i), g, state(i), "lr"};
    if (dice_.one_in(2))
      read.push_back("counter");
    if (norm_ && dice_.one_in(2))
      read.push_back("norm");
    program_.op("update", read, {param(i), state(i)}, role_optimize,
                {param(i), grad(i)});
    if (dice_.one_in(8))
      program_.op("glance", {param(i)}, {"glanced"});
    if (dice_.one_in(6))
      program_.op("shrink", {param(i)}, {param(i)}, role_optimize);
    if (dice_.one_in(8))
      program_.op("peek", {param(i)}, {"peeked"});
  }

  dice dice_;
  std::size_t num_parameters_;
  bool norm_ = false;
  small_program program_;
};

} // namespace

small_program random_program(std::uint64_t seed) {
  dice d{seed};
  small_program p;
  names all{"x", "t0", "t1", "t2", "p0", "p1"};
  names written{"t0", "t1", "t2", "p0", "p1"};
  p.persistable("p0").persistable("p1");
  auto count = 1 + d.below(8);
  for (std::size_t i = 0; i < count; ++i)
    p.op("op" + std::to_string(i), d.some_of(all, 0, 2),
         d.some_of(written, 1, 2));
  return p;
}

small_program random_training_program(std::uint64_t seed) {
  return training_writer{seed}.write();
}

build_options random_options(const small_program& p, std::uint64_t seed) {
  dice d{seed};
  auto options =
    on_cpus(1 + d.below(3), static_cast<merge_strategy>(d.below(4)));
  options.lowering.share_parameters = d.one_in(2);
  options.lowering.fuse_all_reduce_bytes =
    d.one_in(2) ? 16 * d.below(4) : 256 * 1024;
  auto used = [](const op_desc& op, const std::string& name) {
    auto in = op.input_names();
    auto out = op.output_names();
    return std::count(in.begin(), in.end(), name)
             + std::count(out.begin(), out.end(), name)
           > 0;
  };
  for (auto& [name, var] : p.desc.main().vars)
    for (auto& op : p.desc.main().ops)
      if (used(op, name) && d.one_in(20))
        options.fetches.push_back(name);
  return options;
}

} // namespace troupe::graph::testing
