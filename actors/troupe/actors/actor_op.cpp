// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/actor_op.hpp>

#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>

#include <caf/event_based_actor.hpp>

#include <functional>
#include <string>
#include <utility>

namespace troupe {

namespace {

/// A question on its way to the actor.
struct open_question {
  std::shared_ptr<const outside_question> question;
  outside_op::answer_function answer;
};
using open_question_ptr = std::shared_ptr<const open_question>;
using find_actor = std::function<caf::actor()>;

} // namespace

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_actor_op_inside,
                        troupe::actors::type_ids::actor_op_inside)
CAF_ADD_TYPE_ID(troupe_actor_op_inside, (troupe::open_question_ptr))
CAF_END_TYPE_ID_BLOCK(troupe_actor_op_inside)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::open_question_ptr)

namespace troupe {

namespace {

error failure_of(const caf::error& why, std::chrono::milliseconds timeout) {
  if (why == caf::sec::request_receiver_down)
    return {errc::peer_failure, "the op's actor is gone"};
  if (why == caf::sec::request_timeout)
    return {errc::peer_failure, "the op's actor has not answered for "
                                  + std::to_string(timeout.count()) + " ms"};
  return {errc::peer_failure,
          "the op's actor has answered with an error: " + caf::to_string(why)};
}

/// Asks the actor, and hands its answers on.
caf::behavior op_asker(caf::event_based_actor* self, const find_actor& find,
                       std::chrono::milliseconds timeout) {
  return {[=](const open_question_ptr& open) {
    const auto whom = find();
    if (!whom) {
      open->answer({{}, error{errc::peer_failure, "the op's actor is gone"}});
      return;
    }
    actors::ask(self, whom, timeout, op_request{open->question})
      .then(
        [open](const op_outputs& got) {
          open->answer({got.outputs, {}});
        },
        [open, timeout](const caf::error& why) {
          open->answer({{}, failure_of(why, timeout)});
        });
  }};
}

class actor_op final : public outside_op {
public:
  actor_op(caf::actor_system& system, find_actor find,
           std::chrono::milliseconds timeout)
    : asker_(spawn(system, std::move(find), timeout)) {}

  ~actor_op() override {
    caf::anon_send_exit(asker_, caf::exit_reason::user_shutdown);
  }

  void ask(outside_question question, answer_function answer) override {
    actors::post(
      asker_, open_question_ptr{std::make_shared<open_question>(open_question{
                std::make_shared<const outside_question>(std::move(question)),
                std::move(answer)})});
  }

private:
  static caf::actor spawn(caf::actor_system& system, find_actor find,
                          std::chrono::milliseconds timeout) {
    init_message_types();
    actors::register_types<caf::id_block::troupe_actor_op>();
    actors::register_types<caf::id_block::troupe_actor_op_inside>();
    return system.spawn<caf::hidden>(op_asker, std::move(find), timeout);
  }

  caf::actor asker_;
};

} // namespace

std::shared_ptr<outside_op> make_actor_op(caf::actor_system& system,
                                          caf::actor whom,
                                          std::chrono::milliseconds timeout) {
  if (!whom)
    throw error(errc::invalid_argument, "an op without an actor");
  return std::make_shared<actor_op>(
    system, [whom = std::move(whom)] { return whom; }, timeout);
}

std::shared_ptr<outside_op> make_actor_op(caf::actor_system& system,
                                          std::string_view name,
                                          std::chrono::milliseconds timeout) {
  const auto find = [&system, name = std::string(name)] {
    return caf::actor_cast<caf::actor>(actors::find_named(system, name));
  };
  find(); // refuses a name that cannot be
  return std::make_shared<actor_op>(system, find, timeout);
}

} // namespace troupe
