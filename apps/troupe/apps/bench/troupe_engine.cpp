// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_engine.hpp>

#include <troupe/actors/executor.hpp>

#include <string>

namespace troupe::apps {

namespace {

constexpr const char* task_op = "task";
constexpr const char* number = "number";

class task_kernel final : public kernel {
public:
  task_kernel(task_work& work, std::uint32_t task) : work_(work), task_(task) {}
  void run(kernel_context&) override { work_.run(task_); }

private:
  task_work& work_;
  std::uint32_t task_;
};

std::string output_of(std::size_t task) {
  return "t" + std::to_string(task);
}

/// A program with an op per task, which reads what its predecessors write.
graph::program make_program(const task_graph& tasks) {
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

class troupe_engine final : public task_engine {
public:
  troupe_engine(const task_graph& tasks, task_work& work, int threads,
                edge_form form)
    : executor_(make_program(tasks), options(work, threads, form)) {}

  void run_pass() override { executor_.run({}); }
  std::uint64_t messages() const override {
    return executor_.stats().messages_per_step;
  }

private:
  static executor_options options(task_work& work, int threads,
                                  edge_form form) {
    auto kernels = std::make_shared<kernel_table>();
    kernels->add(task_op, device_kind::cpu,
                 [&work](const attribute_map& attributes) {
                   const auto task =
                     static_cast<std::uint32_t>(attributes.get_int(number, 0));
                   return std::unique_ptr<kernel>(
                     std::make_unique<task_kernel>(work, task));
                 });
    executor_options o;
    o.threads = threads;
    o.steps_in_flight = 1; // a pass at a time
    o.form = form;
    o.kernels = std::move(kernels);
    return o;
  }

  executor executor_;
};

} // namespace

std::unique_ptr<task_engine> make_troupe_engine(const task_graph& tasks,
                                                task_work& work, int threads) {
  return std::make_unique<troupe_engine>(tasks, work, threads,
                                         edge_form::counter);
}

std::unique_ptr<task_engine> make_troupe_message_engine(const task_graph& tasks,
                                                        task_work& work,
                                                        int threads) {
  return std::make_unique<troupe_engine>(tasks, work, threads,
                                         edge_form::message);
}

} // namespace troupe::apps
