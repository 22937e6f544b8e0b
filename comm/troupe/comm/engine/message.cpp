// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/message.hpp>

#include <troupe/base/failure_codec.hpp>

#include <cstring>

namespace troupe::comm {

namespace {

template <class Head>
Head begin_of(std::span<const std::byte> message) {
  Head head;
  if (message.size() < sizeof head)
    throw error(errc::peer_failure, "a process sent a malformed message");
  std::memcpy(&head, message.data(), sizeof head);
  return head;
}

message_bytes with_text(const message_head& head, std::string_view text) {
  auto made = message_of(head);
  const auto bytes = std::as_bytes(std::span{text});
  made.insert(made.end(), bytes.begin(), bytes.end());
  return made;
}

std::string_view text_in(std::span<const std::byte> message) {
  const auto text = message.subspan(sizeof(message_head));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

} // namespace

message_bytes message_of(const message_head& head) {
  message_bytes made(sizeof head);
  std::memcpy(made.data(), &head, sizeof head);
  return made;
}

message_bytes message_of(const message_head& head, const error& why) {
  return with_text(head, encode_failure(why));
}

message_bytes beat_of(std::uint64_t steps, std::string_view doing) {
  return with_text({.kind = message_kind::beat, .call = steps},
                   doing.substr(0, most_beat_bytes));
}

message_head head_of(std::span<const std::byte> message) {
  return begin_of<message_head>(message);
}

hello_message hello_of(std::span<const std::byte> message) {
  const auto hello = begin_of<hello_message>(message);
  if (hello.kind != message_kind::hello)
    throw error(errc::peer_failure, "a process runs another program");
  return hello;
}

error error_of(std::span<const std::byte> message) {
  return decode_failure(text_in(message));
}

std::string_view doing_of(std::span<const std::byte> message) {
  const auto doing = text_in(message);
  if (doing.size() > most_beat_bytes)
    throw error(errc::peer_failure, "it sent a malformed message");
  return doing;
}

} // namespace troupe::comm
