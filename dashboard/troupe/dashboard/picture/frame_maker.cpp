// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/answers.hpp>
#include <troupe/dashboard/picture/frame.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

namespace troupe::dashboard {

namespace {

constexpr std::uint64_t repeated_steps = 8;
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

void add_states(frame_writer& frame, const live_picture& picture) {
  std::vector<std::uint8_t> states;
  for (auto s : picture.states())
    states.push_back(static_cast<std::uint8_t>(s));
  frame.add("state", states);
  frame.add("arrived", picture.arrived());
  frame.add("runs", picture.runs());
  frame.add("edge_messages", picture.edge_messages());
}

void add_slices(frame_writer& frame, const slice_log& log, std::uint64_t told) {
  const auto fresh = std::min<std::uint64_t>(
    {log.total() - told, log.slices().size(), frame_maker::most_slices});
  std::vector<double> begin, ms;
  std::vector<std::uint32_t> handle, step;
  std::vector<std::uint16_t> worker;
  std::vector<std::uint8_t> kind;
  for (auto i = log.slices().size() - fresh; i < log.slices().size(); ++i) {
    const auto& s = log.slices()[i];
    begin.push_back(static_cast<double>(s.begin) / 1e6);
    ms.push_back(static_cast<double>(s.end - s.begin) / 1e6);
    handle.push_back(s.op);
    step.push_back(s.step);
    worker.push_back(s.worker);
    kind.push_back(static_cast<std::uint8_t>(s.kind));
  }
  frame.add("slice_begin", begin);
  frame.add("slice_ms", ms);
  frame.add("slice_handle", handle);
  frame.add("slice_worker", worker);
  frame.add("slice_step", step);
  frame.add("slice_kind", kind);
}

// A step's loss can be known after the step has ended: so the last steps are
// told once more.
void add_steps(frame_writer& frame, const live_picture& picture,
               std::uint64_t told) {
  const auto fresh = std::min<std::uint64_t>(
    picture.steps_seen() - told + repeated_steps, picture.steps().size());
  std::vector<std::uint32_t> number;
  std::vector<double> ms, loss, rate, learning_rate;
  for (auto i = picture.steps().size() - fresh; i < picture.steps().size();
       ++i) {
    const auto& s = picture.steps()[i];
    number.push_back(s.step);
    ms.push_back(s.ms.value_or(unknown));
    loss.push_back(s.loss.value_or(unknown));
    rate.push_back(s.samples_per_s.value_or(unknown));
    learning_rate.push_back(s.learning_rate.value_or(unknown));
  }
  frame.add("step_number", number);
  frame.add("step_ms", ms);
  frame.add("step_loss", loss);
  frame.add("step_samples_per_s", rate);
  frame.add("step_learning_rate", learning_rate);
}

} // namespace

std::string frame_maker::next(const live_picture& picture,
                              const board_state& state) {
  frame_writer frame;
  add_states(frame, picture);
  add_slices(frame, picture.slices(), slices_told_);
  add_steps(frame, picture, steps_told_);
  slices_told_ = picture.slices().total();
  steps_told_ = picture.steps_seen();
  return frame.finish(head_answer(picture, state));
}

} // namespace troupe::dashboard
