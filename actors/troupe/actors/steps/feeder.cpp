// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/steps/feeder.hpp>

#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/tasks/graph_tasks.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/recorder.hpp>

#include <algorithm>
#include <utility>

namespace troupe::actors {

feeder::feeder(parts p) : parts_(std::move(p)), queues_(parts_.devices.size()) {
  for (std::size_t d = 0; d < queues_.size(); ++d)
    if (parts_.where.is_here(d))
      queues_[d] = parts_.devices[d]->make_stream({.name = "feed"});
}

void feeder::copy(const feed_map& feeds, step_state& step, step_id id) {
  drop(); // copies for a step that was not admitted
  for (auto& [name, value] : feeds)
    for (std::size_t d = 0; d < parts_.devices.size(); ++d)
      try {
        if (parts_.where.is_here(d))
          copy_to(d, name, value, step, id);
      } catch (const error& e) {
        drop(); // frees their memory
        throw e.with_context(
          {.variable = name, .device = to_string(parts_.devices[d]->id())});
      }
  note_arrivals(feeds, step);
}

void feeder::note_arrivals(const feed_map& feeds, step_state& step) {
  const auto in_scope = std::ranges::any_of(feeds, [this](const auto& feed) {
    return feeds_persistable(*parts_.declarations, feed.first);
  });
  for (std::size_t d = 0; d < queues_.size(); ++d)
    if (auto* queue = queues_[d].get()) {
      step.fed[d] = {queue, queue->position()};
      if (in_scope)
        queue->synchronize(step.fed[d].position);
    }
}

tensor feeder::brought_to(std::size_t device, const tensor& value) {
  copied_bytes_.fetch_add(value.bytes(), std::memory_order_relaxed);
  return parts_.devices[device]->to_device(value, *queues_[device]);
}

void feeder::copy_to(std::size_t device, const std::string& name,
                     const tensor& value, const step_state& step, step_id id) {
  if (feeds_persistable(*parts_.declarations, name)) {
    if (auto* held = parts_.parameters->replica(parts_.where.replica_of(device))
                       .find(name))
      fed_.push_back({held, brought_to(device, value)});
    return;
  }
  const auto& shard = step.shards[device];
  const auto* target = parts_.tasks->find_fed(name, device);
  if (!target || shard.shard_samples == 0)
    return;
  const auto share = parts_.needed->is_whole(name)
                       ? value
                       : value.samples(shard.first_sample, shard.shard_samples);
  // Memory that is marked as shared is not written in place.
  const bool borrows = parts_.borrows && parts_.devices[device]->reaches(share);
  fed_.push_back({&target->value.at(step.slot),
                  borrows ? share.share() : brought_to(device, share)});
  parts_.trace->record_if_wanted(event_kind::feed, target->handle, id,
                                 fed_.back().value.bytes());
}

void feeder::set() noexcept {
  for (auto& f : fed_)
    f.place->set(std::move(f.value));
  drop();
}

} // namespace troupe::actors
