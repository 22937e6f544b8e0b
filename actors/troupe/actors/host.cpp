// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/host.hpp>

#include <thread>

namespace troupe::actors {

namespace {

void refuse(caf::mailbox_element& element, caf::sec why, context ctx) {
  answer_request(element, caf::make_message(caf::make_error(why)), ctx);
}

} // namespace

void actor_base::receive(caf::mailbox_element& element, context ctx) {
  if ((gate_.fetch_add(1, std::memory_order_acq_rel) & closed) == 0)
    handle(element, ctx);
  else
    refuse(element, caf::sec::request_receiver_down, ctx);
  gate_.fetch_sub(1, std::memory_order_release);
}

void actor_base::handle(caf::mailbox_element& element, context ctx) {
  auto& content = element.content();
  if (content.match_elements<caf::exit_msg>()) {
    auto& exit = content.get_as<caf::exit_msg>(0);
    auto reason = exit.reason;
    if (reason && !has_ended() && obeys(exit)) {
      on_exit(reason);
      end(std::move(reason), ctx);
    }
    return;
  }
  if (has_ended() && element.mid.is_request()) {
    refuse(element, caf::sec::request_receiver_down, ctx);
    return;
  }
  // Ordinary messages are still handled after termination: readiness messages
  // in flight must be counted, or the step would never end.
  if (!on_message(element, ctx))
    refuse(element, caf::sec::unexpected_message, ctx);
}

void actor_base::retire() {
  gate_.fetch_or(closed, std::memory_order_acq_rel);
  while (gate_.load(std::memory_order_acquire) != closed)
    std::this_thread::yield();
  end(caf::exit_reason::user_shutdown, nullptr);
}

} // namespace troupe::actors
