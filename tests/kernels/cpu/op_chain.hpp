// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cpu/blocked_images.hpp>

#include <troupe/kernels/device.hpp>
#include <troupe/kernels/random.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

using slot_names =
  std::vector<std::pair<const char*, const char*>>; // slot, variable

/// Variables by name and the ops that run on them.
class op_chain {
public:
  explicit op_chain(attribute_map attributes = {},
                    kernel_table table = cpu_kernels())
    : attributes_(std::move(attributes)), table_(std::move(table)) {}

  void put(const std::string& name, const shape& dims) {
    auto value = tensor::make(device_->memory(), dims, dtype::float32);
    const philox random(1, static_cast<std::uint32_t>(variables_.size()), 0);
    std::uint64_t i = 0;
    for (float& element : value.values<float>())
      element = random.uniform(i++) - 0.5f;
    variables_[name].set(std::move(value));
  }

  void put_in_blocks(const std::string& name, const cpu::image_format& format) {
    auto& var = variables_[name];
    var.set(in_blocks(var.as_tensor(), format, device_->memory()));
  }

  void in_plain(const std::string& name) {
    auto& var = variables_[name];
    var.set(device_->to_host(var.as_tensor(), device_->memory()));
  }

  void run(const char* type, const slot_names& inputs,
           const slot_names& outputs) {
    run(type, inputs, outputs, attributes_);
  }
  /// With other attributes than the chain's.
  void run(const char* type, const slot_names& inputs,
           const slot_names& outputs, const attribute_map& attributes) {
    run(*table_.make(type, device_kind::cpu, attributes), inputs, outputs,
        attributes);
  }
  /// By a kernel that is kept for several runs.
  void run(kernel& code, const slot_names& inputs, const slot_names& outputs,
           const attribute_map& attributes) {
    const step_info step{};
    const auto in = bind(inputs), out = bind(outputs);
    kernel_context ctx(*device_, nullptr, attributes, in, out, step);
    code.run(ctx);
  }

  const attribute_map& attributes() const { return attributes_; }

  variable& at(const std::string& name) { return variables_[name]; }

  std::vector<float> elements(const std::string& name) {
    const tensor plain =
      device_->to_host(variables_[name].as_tensor(), device_->memory());
    const auto all = plain.values<float>();
    return {all.begin(), all.end()};
  }

private:
  argument_list bind(const slot_names& arguments) {
    argument_list bound;
    for (auto [slot, name] : arguments)
      bound.add({slot, name, &variables_[name]});
    return bound;
  }

  attribute_map attributes_;
  kernel_table table_;
  std::unique_ptr<device> device_ = make_cpu_device(0);
  std::map<std::string, variable> variables_;
};

/// How the images lie: channels per block, 0: plain.
struct layouts {
  std::int64_t x = 0, z = 0, gradient = 0;
};

/// A batch norm with a relu behind it, and a sum with z between if it `adds`.
struct chain_case {
  shape dims;
  bool adds = false;
  layouts blocks = {};
  attribute_map attributes = {};
};

/// x, z, dout and what batch norms read, all random.
inline op_chain with_inputs(const chain_case& c) {
  op_chain ops(c.attributes);
  const bool last = c.attributes.get_string("data_layout", "NCHW") == "NHWC";
  const auto channels = c.dims[last ? c.dims.rank() - 1 : 1];
  for (auto name : {"x", "z", "dout"})
    ops.put(name, c.dims);
  for (auto name : {"scale", "bias", "mean", "variance"})
    ops.put(name, {channels});
  if (c.blocks.x > 0)
    ops.put_in_blocks("x", {c.blocks.x});
  if (c.blocks.z > 0)
    ops.put_in_blocks("z", {c.blocks.z});
  if (c.blocks.gradient > 0)
    ops.put_in_blocks("dout", {c.blocks.gradient});
  return ops;
}

inline slot_names operator+(slot_names all,
                            std::pair<const char*, const char*> more) {
  all.push_back(more);
  return all;
}
inline slot_names operator+(slot_names all, const slot_names& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

} // namespace troupe::test
