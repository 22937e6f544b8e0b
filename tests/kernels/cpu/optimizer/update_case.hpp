// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cpu/op_chain.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

/// An optimizer's op: Param p, Grad g and what it keeps besides.
struct update {
  const char* type;
  slot_names state_in;
  slot_names state_out;
  attribute_map attributes = {};
};

inline const std::vector<update> updates{
  {"sgd", {}, {}},
  {"momentum", {{"Velocity", "a"}}, {{"VelocityOut", "a"}}, {{"mu", 0.9f}}},
  {"momentum",
   {{"Velocity", "a"}},
   {{"VelocityOut", "a"}},
   {{"mu", 0.9f}, {"use_nesterov", true}}},
  {"adam",
   {{"Moment1", "a"}, {"Moment2", "b"}, {"Beta1Pow", "lr"}, {"Beta2Pow", "lr"}},
   {{"Moment1Out", "a"}, {"Moment2Out", "b"}}},
  {"adamw",
   {{"Moment1", "a"}, {"Moment2", "b"}, {"Beta1Pow", "lr"}, {"Beta2Pow", "lr"}},
   {{"Moment1Out", "a"}, {"Moment2Out", "b"}},
   {{"with_decay", true}}},
};

/// Of float32 [dims]: p, g, the states a and b; the learning rate lr.
inline op_chain before_update(const shape& dims,
                              kernel_table table = cpu_kernels()) {
  op_chain ops({}, std::move(table));
  for (auto name : {"p", "g", "a", "b"})
    ops.put(name, dims);
  for (float& x : ops.at("b").as_tensor().values<float>())
    x *= x; // a second moment
  ops.put("lr", {1});
  ops.at("lr").as_tensor().data<float>()[0] = 0.125f;
  return ops;
}

/// Runs `type`, what `u` does or the same with several gradients.
inline void step(op_chain& ops, const update& u, const std::string& type,
                 const std::vector<const char*>& gradients) {
  slot_names inputs{{"Param", "p"}, {"LearningRate", "lr"}};
  for (auto g : gradients)
    inputs.emplace_back("Grad", g);
  const slot_names outputs{{"ParamOut", "p"}};
  ops.run(type.c_str(), inputs + u.state_in, outputs + u.state_out,
          u.attributes);
}

inline void step(op_chain& ops, const update& u) {
  step(ops, u, u.type, {"g"});
}

} // namespace troupe::test
