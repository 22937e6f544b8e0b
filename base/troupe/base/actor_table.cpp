// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/actor_table.hpp>

#include <troupe/base/clock.hpp>

namespace troupe {

std::size_t
actor_table::key_hash::operator()(const actor_key& key) const noexcept {
  return std::hash<std::uint64_t>{}(key.home * 0x9e3779b97f4a7c15 + key.id);
}

actor_number actor_table::add_locked(const actor_key& key,
                                     recorded_actor made) {
  if (actors_.size() >= most_actors)
    return no_actor;
  const auto number = static_cast<actor_number>(actors_.size());
  living_.insert_or_assign(key, number);
  actors_.push_back({std::move(made), key, ++version_});
  return number;
}

actor_number actor_table::add(const actor_key& key, recorded_actor made) {
  std::lock_guard guard{mutex_};
  return add_locked(key, std::move(made));
}

actor_number
actor_table::find_or_add(const actor_key& key,
                         const std::function<recorded_actor()>& make) {
  std::lock_guard guard{mutex_};
  const auto found = living_.find(key);
  return found != living_.end() ? found->second : add_locked(key, make());
}

void actor_table::rename(actor_number which, std::string_view name) {
  std::lock_guard guard{mutex_};
  if (which >= actors_.size())
    return;
  auto& changed = actors_[which];
  changed.actor.name = name;
  changed.version = ++version_;
}

void actor_table::end(actor_number which, bool has_failed, std::string reason) {
  std::lock_guard guard{mutex_};
  if (which >= actors_.size() || actors_[which].actor.end_ns)
    return;
  auto& ended = actors_[which];
  ended.actor.end_ns = static_cast<std::int64_t>(now_ns());
  ended.actor.has_failed = has_failed;
  ended.actor.reason = std::move(reason);
  ended.version = ++version_;
  // A later system can have the same address, and count from the same number.
  const auto found = living_.find(ended.key);
  if (found != living_.end() && found->second == which)
    living_.erase(found);
}

std::uint32_t actor_table::type_of(std::uint64_t key,
                                   const std::function<std::string()>& make) {
  std::lock_guard guard{mutex_};
  const auto found = type_numbers_.find(key);
  if (found != type_numbers_.end())
    return found->second;
  const auto number = static_cast<std::uint32_t>(types_.size());
  if (number >= most_types)
    return most_types - 1;
  types_.emplace_back(number + 1 < most_types ? make() : "other types",
                      ++version_);
  type_numbers_.emplace(key, number);
  return number;
}

actor_table::changes actor_table::since(std::uint64_t version) const {
  std::lock_guard guard{mutex_};
  changes found;
  found.version = version_;
  if (version == version_)
    return found;
  for (actor_number i = 0; i < actors_.size(); ++i)
    if (actors_[i].version > version)
      found.actors.emplace_back(i, actors_[i].actor);
  for (std::uint32_t i = 0; i < types_.size(); ++i)
    if (types_[i].second > version)
      found.types.emplace_back(i, types_[i].first);
  return found;
}

} // namespace troupe
