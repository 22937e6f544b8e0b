// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/host.hpp>

#include <thread>

namespace troupe::actors {

void actor_base::enqueue(caf::mailbox_element_ptr element, context ctx) {
  if ((gate_.fetch_add(1, std::memory_order_acq_rel) & closed) == 0)
    receive(*element, ctx);
  else
    reply(*element,
          caf::make_message(make_error(caf::sec::request_receiver_down)), ctx);
  gate_.fetch_sub(1, std::memory_order_release);
}

void actor_base::receive(caf::mailbox_element& element, context ctx) {
  auto& content = element.content();
  if (content.match_elements<caf::exit_msg>()) {
    auto& exit = content.get_as<caf::exit_msg>(0);
    auto reason = exit.reason;
    if (reason && !getf(is_cleaned_up_flag) && obeys(exit)) {
      on_exit(reason);
      cleanup(std::move(reason), ctx);
    }
    return;
  }
  if (getf(is_cleaned_up_flag) && element.mid.is_request()) {
    reply(element,
          caf::make_message(make_error(caf::sec::request_receiver_down)), ctx);
    return;
  }
  // Ordinary messages are still handled after termination: readiness messages
  // in flight must be counted, or the step would never end.
  if (!on_message(element, ctx))
    reply(element, caf::make_message(make_error(caf::sec::unexpected_message)),
          ctx);
}

void actor_base::retire() {
  gate_.fetch_or(closed, std::memory_order_acq_rel);
  while (gate_.load(std::memory_order_acquire) != closed)
    std::this_thread::yield();
  if (!getf(is_cleaned_up_flag))
    cleanup(caf::exit_reason::user_shutdown, nullptr);
}

void actor_base::on_destroy() {
  // In CAF 0.17 the base class does not notify monitors when the last handle is
  // destroyed.
  if (!getf(is_cleaned_up_flag))
    cleanup(caf::exit_reason::unreachable, nullptr);
  caf::monitorable_actor::on_destroy();
}

void actor_base::reply(caf::mailbox_element& element, caf::message answer,
                       context ctx) {
  if (element.mid.is_request() && element.sender)
    element.sender->enqueue(nullptr, element.mid.response_id(),
                            std::move(answer), ctx);
}

} // namespace troupe::actors
