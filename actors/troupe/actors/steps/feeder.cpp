// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/feeder.hpp>

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/tasks/graph_tasks.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/recorder.hpp>

namespace troupe::actors {

void feeder::copy(const feed_map& feeds, const step_state& step, step_id id) {
  drop(); // left from a step that failed here
  for (auto& [name, value] : feeds)
    for (std::size_t d = 0; d < parts_.devices.size(); ++d)
      try {
        if (parts_.is_here(d))
          copy_to(d, name, value, step, id);
      } catch (const error& e) {
        drop(); // frees their memory
        throw e.with_context(
          {.variable = name, .device = to_string(parts_.devices[d]->id())});
      }
}

void feeder::copy_to(std::size_t device, const std::string& name,
                     const tensor& value, const step_state& step, step_id id) {
  auto& to = *parts_.devices[device];
  if (feeds_persistable(*parts_.declarations, name)) {
    if (auto* held = parts_.parameters->replica(device).find(name))
      fed_.push_back({held, to.to_device(value)});
    return;
  }
  const auto& shard = step.devices[device];
  const auto* target = parts_.tasks->find_fed(name, device);
  if (!target || shard.shard_samples == 0)
    return;
  const auto share = parts_.needed->is_whole(name)
                       ? value
                       : value.samples(shard.first_sample, shard.shard_samples);
  fed_.push_back({&target->value.at(step.slot), to.to_device(share)});
  parts_.trace->record_if(trace_level::steps, event_kind::feed, target->handle,
                          id, fed_.back().value.bytes());
}

void feeder::set() noexcept {
  for (auto& f : fed_)
    f.place->set(std::move(f.value));
  drop();
}

} // namespace troupe::actors
