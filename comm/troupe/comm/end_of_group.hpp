// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::comm {

/// One rank's end of a group, which all ends of the process share. `Group` has
/// the functions of `communicator`, with the rank as the first argument.
template <class Group>
class end_of_group : public communicator {
public:
  end_of_group(std::shared_ptr<Group> group, std::size_t rank)
    : communicator(rank, group->size()), group_(std::move(group)) {}
  ~end_of_group() override {
    group_->leave(rank(), {errc::peer_failure, "its communicator is gone"});
  }

  launch_result start(const collective_call& call, completion& whole) override {
    return group_->start(rank(), call, whole);
  }
  void fail(const error& why) override { group_->fail(rank(), why); }
  void give_up(ticket first, ticket last, const error& why) override {
    group_->give_up(rank(), first, last, why);
  }
  std::vector<waiting_call> waiting_calls(std::size_t most) const override {
    return group_->waiting_calls(rank(), most);
  }
  void leave(const error& why) override { group_->leave(rank(), why); }

protected:
  Group& group() const noexcept { return *group_; }

private:
  std::shared_ptr<Group> group_;
};

} // namespace troupe::comm
