// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tasks/outside_task.hpp>

#include <troupe/base/error.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace troupe::actors {

namespace {

class outside_task final : public op_task {
public:
  outside_task(const graph::op_desc& desc, const task_place& place,
               std::shared_ptr<outside_op> computes,
               std::unique_ptr<kernel> takes, answer_kernel& answers,
               std::span<const task_argument> inputs,
               std::span<const task_argument> outputs)
    : desc_(desc), place_(place), computes_(std::move(computes)),
      takes_(std::move(takes)), answers_(answers),
      inputs_(variables_of(inputs)), outputs_(variables_of(outputs)) {}

  launch_status run(step_state& step, completion& whole) override {
    if (step.idle(place_.shard))
      return launch_status::done;
    outside_question question{desc_.type,
                              to_string(place_.on.id()),
                              step.id.load(std::memory_order_relaxed),
                              {},
                              desc_.attributes};
    with_context(step, [&](kernel_context& ctx) {
      for (auto& slot : desc_.inputs)
        for (std::size_t i = 0; i < slot.arguments.size(); ++i)
          if (ctx.has_input(slot.name, i))
            question.inputs[slot.name].push_back(
              ctx.input(slot.name, i).share());
    });
    // The step does not end before the answer, so its state stays.
    computes_->ask(std::move(question),
                   [this, &step, &whole](outside_answer answer) {
                     take(step, std::move(answer), whole);
                   });
    return launch_status::pending;
  }

private:
  void take(step_state& step, outside_answer answer, completion& whole) {
    std::exception_ptr failure;
    try {
      if (answer.failure)
        throw *std::move(answer.failure);
      answers_.set(std::move(answer.outputs));
      with_context(step, [this](kernel_context& ctx) { takes_->run(ctx); });
    } catch (...) {
      failure = std::current_exception();
    }
    whole.completed(failure);
  }

  template <class Act>
  void with_context(step_state& step, Act act) {
    kernel_context ctx{place_.on,
                       &place_.queue,
                       desc_.attributes,
                       {desc_.inputs, inputs_[step.slot].data()},
                       {desc_.outputs, outputs_[step.slot].data()},
                       step.shards[place_.shard]};
    act(ctx);
  }

  using by_slot = std::vector<std::vector<variable*>>;

  /// By step slot, where the arguments lie.
  by_slot variables_of(std::span<const task_argument> all) const {
    const auto slots = static_cast<std::uint32_t>(place_.slots);
    by_slot found(slots);
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      for (auto& a : all)
        found[slot].push_back(
          a.value ? &a.value->at((slot - a.distance) & (slots - 1)) : nullptr);
    return found;
  }

  const graph::op_desc& desc_;
  const task_place& place_;
  std::shared_ptr<outside_op> computes_;
  std::unique_ptr<kernel> takes_;
  answer_kernel& answers_; // within `takes_`
  by_slot inputs_, outputs_;
};

} // namespace

void answer_kernel::run(kernel_context& ctx) {
  const auto answered = std::exchange(outputs_, {});
  for (auto& slot : ctx.outputs().slots()) {
    const auto found = answered.find(slot.name);
    for (std::size_t i = 0; i < slot.arguments.size(); ++i) {
      if (!ctx.has_output(slot.name, i))
        continue;
      if (found == answered.end() || i >= found->second.size()
          || !found->second[i])
        throw error(errc::kernel_failure,
                    "the answer lacks output " + slot.name + "["
                      + std::to_string(i) + "]",
                    {.variable = slot.arguments[i]});
      if (!ctx.on().reaches(found->second[i]) || !found->second[i].is_plain())
        throw error(errc::invalid_argument,
                    "the answer is not plain, or not in memory that "
                      + to_string(ctx.on().id()) + " can use",
                    {.variable = slot.arguments[i]});
      ctx.output_variable(slot.name, i).set(found->second[i].share());
    }
  }
}

std::unique_ptr<op_task>
make_outside_task(const graph::op_desc& desc, const task_place& place,
                  std::shared_ptr<outside_op> computes,
                  std::unique_ptr<kernel> takes, answer_kernel& answers,
                  std::span<const task_argument> inputs,
                  std::span<const task_argument> outputs) {
  return std::make_unique<outside_task>(desc, place, std::move(computes),
                                        std::move(takes), answers, inputs,
                                        outputs);
}

} // namespace troupe::actors
