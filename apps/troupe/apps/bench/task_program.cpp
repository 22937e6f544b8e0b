// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_program.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::apps {

namespace {

constexpr const char* task_op = "task";
constexpr const char* number = "number";

std::string output_of(std::size_t task) {
  return "t" + std::to_string(task);
}

} // namespace

graph::program make_task_program(const task_graph& tasks) {
  graph::program p;
  for (std::size_t t = 0; t < tasks.tasks(); ++t) {
    graph::var_desc output;
    output.name = output_of(t);
    p.main().add_var(std::move(output));
    graph::op_desc op;
    op.type = task_op;
    std::vector<std::string> inputs;
    for (auto before : tasks.before(t))
      inputs.push_back(output_of(before));
    op.set_input("X", std::move(inputs));
    op.set_output("Out", {output_of(t)});
    op.attributes.set(number, static_cast<std::int64_t>(t));
    p.main().ops.push_back(std::move(op));
  }
  return p;
}

std::shared_ptr<const kernel_table> make_task_kernels(task_kernel_maker make) {
  auto kernels = std::make_shared<kernel_table>();
  kernels->add(task_op, device_kind::cpu,
               [make = std::move(make)](const attribute_map& attributes) {
                 return make(
                   static_cast<std::uint32_t>(attributes.get_int(number, 0)));
               });
  return kernels;
}

} // namespace troupe::apps
