// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/transfer_tasks.hpp>

#include <exception>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

step_id id_of(const step_state& step) {
  return step.id.load(std::memory_order_relaxed);
}

bool has_failed(const step_state& step) {
  return step.failed.load(std::memory_order_relaxed);
}

outgoing_item failed_with(error reason) {
  return {{}, std::move(reason)};
}

class send_task final : public op_task {
public:
  send_task(transport& ends, std::uint32_t channel, const storage& from,
            bool only_in_updates)
    : ends_(ends), channel_(channel), from_(from),
      only_in_updates_(only_in_updates) {}

  launch_status run(step_state& step, completion& whole) override {
    outgoing_item item;
    try {
      const auto works = step.updates || !only_in_updates_;
      item = ends_.encoded(works ? from_.at(step.slot) : nothing_);
    } catch (const std::exception& e) {
      // The receiver waits for an item in any case.
      ends_.send(channel_, id_of(step),
                 failed_with({errc::kernel_failure, e.what()}), whole);
      throw;
    }
    const auto status =
      ends_.send(channel_, id_of(step), std::move(item), whole);
    // A thread that failed the step meanwhile may not have seen this send.
    if (status == launch_status::pending && has_failed(step))
      ends_.give_up(channel_, id_of(step), step.reason());
    return status;
  }

  launch_status skip(step_state& step, completion& whole) override {
    return ends_.send(channel_, id_of(step), failed_with(step.reason()), whole);
  }

private:
  transport& ends_;
  std::uint32_t channel_;
  storage from_;
  bool only_in_updates_;
  const variable nothing_;
};

class recv_task final : public op_task, private transport::receiver {
public:
  recv_task(transport& ends, std::uint32_t channel, const storage& to,
            bool only_in_updates)
    : ends_(ends), channel_(channel), to_(to),
      only_in_updates_(only_in_updates) {
    ends_.receive_into(channel, to_.memory());
  }

  launch_status run(step_state& step, completion& whole) override {
    step_ = &step;
    whole_ = &whole;
    const auto id = id_of(step);
    if (auto item = ends_.receive(channel_, id, *this)) {
      take(*std::move(item));
      return launch_status::done;
    }
    // From here on, the step can end, and `step` can belong to a later one.
    // That does no harm: giving up an item that has been taken has no effect.
    if (has_failed(step))
      ends_.give_up(channel_, id, {errc::cancelled, "the step has failed"});
    return launch_status::pending;
  }

  launch_status skip(step_state& step, completion&) override {
    ends_.drop(channel_, id_of(step));
    return launch_status::done;
  }

private:
  void take(incoming_item item) {
    if (item.failure)
      throw *std::move(item.failure);
    if (!has_failed(*step_) && (step_->updates || !only_in_updates_))
      to_.at(step_->slot) = std::move(item.value);
  }

  void received(incoming_item item) noexcept override {
    std::exception_ptr failure;
    try {
      take(std::move(item));
    } catch (...) {
      failure = std::current_exception();
    }
    whole_->completed(failure);
  }

  transport& ends_;
  std::uint32_t channel_;
  storage to_;
  bool only_in_updates_;
  // The step of the current run; there is only one run at a time.
  step_state* step_ = nullptr;
  completion* whole_ = nullptr;
};

} // namespace

std::unique_ptr<op_task> make_send_task(transport& ends, std::uint32_t channel,
                                        const storage& from,
                                        bool only_in_updates) {
  return std::make_unique<send_task>(ends, channel, from, only_in_updates);
}

std::unique_ptr<op_task> make_recv_task(transport& ends, std::uint32_t channel,
                                        const storage& to,
                                        bool only_in_updates) {
  return std::make_unique<recv_task>(ends, channel, to, only_in_updates);
}

} // namespace troupe::actors
