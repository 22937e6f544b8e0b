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

} // namespace

message_bytes message_of(const message_head& head) {
  message_bytes made(sizeof head);
  std::memcpy(made.data(), &head, sizeof head);
  return made;
}

message_bytes message_of(const message_head& head, const error& why) {
  auto made = message_of(head);
  const auto text = encode_failure(why);
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  made.insert(made.end(), bytes, bytes + text.size());
  return made;
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
  const auto text = message.subspan(sizeof(message_head));
  return decode_failure(
    {reinterpret_cast<const char*>(text.data()), text.size()});
}

} // namespace troupe::comm
