// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/elastic/epoch_group.hpp>

#include <troupe/actors/remote/calls_in_flight.hpp>
#include <troupe/apps/elastic/meeting_store.hpp>
#include <troupe/base/error.hpp>
#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/shm/join.hpp>

#include <chrono>
#include <utility>

namespace troupe::apps {

namespace {

// For a rank that still reads its data, or that hangs.
constexpr std::chrono::seconds longest_wait{120};

std::unique_ptr<comm::communicator> join_in_memory(rank_part& part) {
  return std::move(
    comm::join_shm_group({.path = part.meeting_folder() + "/state",
                          .process = part.rank(),
                          .processes = part.size(),
                          .timeout = longest_wait,
                          .check = [&part] { part.require_epoch(); }})
      .front());
}

std::unique_ptr<comm::communicator>
join_by_gloo(rank_part& part, const std::shared_ptr<meeting_store>& store) {
  comm::gloo_group_options group;
  group.timeout = longest_wait;
  group.check = [&part] { part.require_epoch(); };
  group.store = store;
  group.process = part.rank();
  group.processes = part.size();
  group.address = store->own_address();
  return std::move(comm::join_gloo_group(group).front());
}

} // namespace

epoch_group::epoch_group(rank_part& part) : part_(part) {
  if (!part.is_on_several_hosts()) {
    end_ = join_in_memory(part);
    return;
  }
  store_ = std::make_shared<meeting_store>(
    part, std::chrono::steady_clock::now() + longest_wait);
  end_ = join_by_gloo(part, store_);
}

epoch_group::~epoch_group() = default;

void epoch_group::call(comm::collective_kind kind, std::size_t root,
                       const comm::rank_value& value) {
  actors::calls_in_flight calls;
  calls.start(*end_, {kind, root, {&value, 1}});
  const auto deadline = std::chrono::steady_clock::now() + longest_wait;
  calls.wait(
    [&] {
      part_.require_epoch();
      if (std::chrono::steady_clock::now() > deadline)
        throw error(errc::peer_failure, "a rank does not send its state");
    },
    [this](const error& e) { end_->leave(e); });
}

} // namespace troupe::apps
