// SPDX-License-Identifier: Apache-2.0
// A group over an engine whose other process says what the input wants: letters
// with changes, and any other messages, while this process makes calls. Also a
// letter alone, and a stream of messages.

#include "fuzz/fuzz_target.hpp"
#include "fuzz/input_bytes.hpp"
#include "fuzz/messages/hostile_engine.hpp"
#include "fuzz/messages/played_call.hpp"

#include <troupe/comm/engine/engine_group.hpp>
#include <troupe/comm/engine/frame_reader.hpp>
#include <troupe/comm/engine/staged_call.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

namespace troupe::fuzz {

namespace {

constexpr std::size_t letter_bytes = 256, piece_bytes = 512;
constexpr std::size_t most_actions = 64;

comm::engine_group_options options() {
  comm::engine_group_options made;
  made.letter_bytes = letter_bytes;
  made.piece_bytes = piece_bytes;
  return made;
}

/// Changes bytes of a message, or cuts it.
void change(comm::message_bytes& message, input_bytes& in) {
  for (auto changes = in.byte() % 16; changes > 0; --changes) {
    const auto at = in.number();
    const auto value = std::byte{in.byte()};
    if (at < message.size())
      message[at] = value;
    else
      message.resize(std::min(message.size(), std::size_t{in.byte()}));
  }
}

comm::message_bytes hello(input_bytes& in) {
  comm::hello_message head;
  head.process = 1;
  head.processes = 2;
  head.ranks = comm::bit_of(1);
  head.letter_bytes = letter_bytes;
  head.piece_bytes = piece_bytes;
  comm::message_bytes made(sizeof head);
  std::memcpy(made.data(), &head, sizeof head);
  change(made, in);
  return made;
}

/// The other process, and the calls of both.
class meeting_of_two {
public:
  explicit meeting_of_two(input_bytes& in) : in_(in) {
    auto greeting = hello(in);
    auto engine =
      std::make_unique<hostile_engine>(std::move(greeting), in.byte());
    other_ = engine.get();
    for (auto early = in.byte() % 4; early > 0; --early)
      other_->add_early(head_and_rest());
    ends_ = comm::join_engine_group(std::move(engine), options());
  }

  ~meeting_of_two() {
    // Otherwise the group would wait for the other process.
    if (!ends_.empty())
      other_->be_lost();
    ends_.clear();
    for (auto& call : calls_)
      call.check();
  }
  meeting_of_two(const meeting_of_two&) = delete;
  meeting_of_two& operator=(const meeting_of_two&) = delete;

  void act() {
    for (std::size_t i = 0; i < most_actions && !in_.is_empty(); ++i)
      act_once();
  }

private:
  void act_once() {
    switch (in_.byte() % 4) {
    case 0: return make_call();
    case 1: return other_->say(letter());
    case 2: return other_->say(head_and_rest());
    default: (void)ends_.front()->waits_for();
    }
  }

  void make_call() {
    calls_.emplace_back(in_.byte(), 0, memory_).start(*ends_.front());
  }

  /// The letter of the other process's next call.
  comm::message_bytes letter() {
    const played_call made{in_.byte(), 1, memory_};
    auto message =
      comm::stage(1, made.call(), letter_bytes / 2, memory_).message;
    auto head = comm::head_of(message);
    head.call = ++position_;
    std::memcpy(message.data(), &head, sizeof head);
    change(message, in_);
    return message;
  }

  comm::message_bytes head_and_rest() {
    const auto hello = static_cast<std::uint32_t>(comm::message_kind::hello);
    comm::message_head head{comm::message_kind{hello + in_.byte() % 12}};
    head.rank = in_.byte();
    head.call = in_.number();
    auto message = comm::message_of(head);
    const auto rest = std::as_bytes(std::span{in_.take(in_.number())});
    message.insert(message.end(), rest.begin(), rest.end());
    change(message, in_);
    return message;
  }

  input_bytes& in_;
  arena memory_{make_host_memory_source()};
  std::deque<played_call> calls_; // which the group can use until it is gone
  hostile_engine* other_ = nullptr;
  std::vector<std::unique_ptr<comm::communicator>> ends_;
  ticket position_ = 0;
};

/// One letter alone, as in shared memory.
void check_letter(std::string_view bytes) {
  comm::message_bytes memory(bytes.size());
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  const comm::letter_view letter{memory, 0, memory.size(), 0};
  (void)letter.text();
  comm::letters_plan plan{1};
  plan.read({&letter, 1});
  plan.check(letter.head().has_values);
  for (std::size_t i = 0; letter.head().has_values && i < plan.values().size();
       ++i)
    if (plan.values()[i].givers != 0)
      read_all({plan.elements(0, i), plan.value(0, i).bytes});
}

/// A stream of messages that comes in parts.
void check_frames(input_bytes& in) {
  comm::frame_reader reader;
  while (!in.is_empty()) {
    const auto space = reader.space();
    const auto part = in.take(std::min(in.number(), space.size()));
    std::memcpy(space.data(), part.data(), part.size());
    reader.came(part.size(),
                [](std::span<const std::byte> message) { read_all(message); });
  }
}

} // namespace

// A call of any number has a place in a list.
memory_allowance allowance() {
  return {.per_byte = 256, .at_once = std::size_t{24} << 20};
}

void run_target(std::string_view bytes) {
  set_host_memory_limit(std::size_t{16} << 20);
  input_bytes in{bytes};
  const auto what = in.byte() % 8;
  if (what % 4 == 3)
    return check_letter(in.rest());
  if (what == 4) {
    accept_only({errc::peer_failure}, [&] { check_frames(in); });
    return;
  }
  accept_only({errc::peer_failure, errc::invalid_argument}, [&] {
    meeting_of_two both{in};
    both.act();
  });
}

} // namespace troupe::fuzz
