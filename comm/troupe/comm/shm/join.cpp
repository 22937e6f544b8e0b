// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/join.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/end_of_group.hpp>
#include <troupe/comm/shm/board.hpp>
#include <troupe/comm/shm/meeting.hpp>
#include <troupe/comm/shm/parcel_ring.hpp>
#include <troupe/comm/shm/shm_group.hpp>

#include <bit>
#include <new>
#include <string>
#include <utility>

namespace troupe::comm {

namespace shm {

namespace {

/// The board, and the rings of parcels behind it.
void make_board(std::byte* at, std::size_t processes) {
  new (at) board;
  make_rings(at + sizeof(board), processes);
}

/// Throws if a rank is missing.
void check_ranks(const std::vector<member>& members) {
  rank_mask all = 0;
  for (auto& m : members)
    all |= m.ranks;
  if (all >= bit_of(max_ranks))
    throw error(errc::invalid_argument,
                "shared memory group: there are too many ranks");
  if ((all & (all + 1)) != 0)
    throw error(errc::invalid_argument,
                "shared memory group: no process has rank "
                  + std::to_string(std::countr_one(all)));
}

// -- ends ---------------------------------------------------------------------

class shm_communicator final : public end_of_group<shm_group> {
public:
  using end_of_group::end_of_group;
  ~shm_communicator() override {
    leave({errc::peer_failure, "its communicator is gone"});
    group().wait_for_end(rank());
  }

  arena* memory() noexcept override { return &group().memory(); }
  bool progress() override { return group().progress(); }
  void begin_looking() override { group().begin_looking(); }
  void end_looking() override { group().end_looking(); }
  void beat(std::uint64_t steps, std::string_view doing) override {
    group().beat(steps, doing);
  }
  std::vector<peer_state> peers() const override { return group().peers(); }
  void open_parcels(parcel_receiver& to) override { group().gate().open(to); }
  void close_parcels() noexcept override { group().gate().close(); }
  void send_parcel(std::size_t to, parcel p) override {
    group().parcels().send(rank(), to, std::move(p));
  }
};

} // namespace

} // namespace shm

std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options,
               std::shared_ptr<process_memory> own) {
  auto all =
    shm::meet(options, *own,
              {sizeof(shm::board) + shm::bytes_of_rings(options.processes),
               shm::make_board});
  shm::check_ranks(all.members);
  const auto group = std::make_shared<shm::shm_group>(
    std::move(all.common), std::move(all.members), options.process,
    std::move(own));
  std::vector<std::unique_ptr<communicator>> ends;
  for (auto rank : group->own_ranks())
    ends.push_back(std::make_unique<shm::shm_communicator>(group, rank));
  return ends;
}

std::vector<std::unique_ptr<communicator>>
join_shm_group(const shm_group_options& options) {
  return join_shm_group(options, std::make_shared<process_memory>());
}

} // namespace troupe::comm
