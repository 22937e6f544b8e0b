// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/op_tasks.hpp>

#include <troupe/graph/dtype_number.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::actors {

namespace {

class scale_loss_grad_task final : public op_task {
public:
  scale_loss_grad_task(const graph::op_desc& desc, device& on, stream& queue,
                       std::size_t device_index, const storage& out)
    : device_(on), queue_(queue), device_index_(device_index),
      weigh_(desc.attributes.get_string("gradient_scale", "coeff") == "coeff"),
      dims_(desc.attributes.get_ints("shape", {})),
      type_(graph::dtype_of_number(desc.attributes.get_int("dtype", float32))),
      out_(out) {}

  launch_status run(step_state& step, completion&) override {
    const auto& info = step.shards[device_index_];
    if (info.shard_samples == 0)
      return launch_status::done;
    auto host = tensor::make(host_, dims_, dtype::float64);
    const double weight = weigh_ ? static_cast<double>(info.shard_samples)
                                     / static_cast<double>(info.batch_samples)
                                 : 1.0;
    std::ranges::fill(host.values<double>(), weight);
    out_.at(step.slot).set(device_.to_device(cast(host, type_, host_), queue_));
    return launch_status::done;
  }

private:
  static constexpr std::int64_t float32 = 5; // number in framework.proto

  device& device_;
  stream& queue_;
  std::size_t device_index_;
  bool weigh_;
  shape dims_;
  dtype type_;
  storage out_;
  arena host_{make_host_memory_source()};
};

} // namespace

std::unique_ptr<op_task> make_scale_loss_grad_task(const graph::op_desc& desc,
                                                   device& on, stream& queue,
                                                   std::size_t device_index,
                                                   const storage& out) {
  return std::make_unique<scale_loss_grad_task>(desc, on, queue, device_index,
                                                out);
}

} // namespace troupe::actors
