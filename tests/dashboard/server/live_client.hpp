// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "raw_client.hpp"
#include "served_run.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::dashboard::test {

/// A frame of WebSocket (RFC 6455, section 5.2), as it came.
struct live_frame {
  int code = -1; ///< 0 goes on, 1 text, 2 binary, 8 close, 9 ping, 10 pong
  bool is_last = false;
  std::string payload{};
};

/// The bytes of a frame. Those of a client have a mask.
inline std::string frame_bytes(int first, std::string_view payload,
                               bool has_mask = true) {
  constexpr std::string_view mask = "\x11\x22\x33\x44";
  std::string bytes{static_cast<char>(first)};
  const auto bit = has_mask ? 0x80 : 0;
  if (payload.size() < 126) {
    bytes += static_cast<char>(bit | static_cast<int>(payload.size()));
  } else {
    bytes += static_cast<char>(bit | 126);
    bytes += static_cast<char>(payload.size() >> 8 & 255);
    bytes += static_cast<char>(payload.size() & 255);
  }
  if (has_mask)
    bytes += mask;
  for (std::size_t i = 0; i < payload.size(); ++i)
    bytes +=
      static_cast<char>(has_mask ? payload[i] ^ mask[i % 4] : payload[i]);
  return bytes;
}

/// A client that watches a run.
class live_client : public raw_client {
public:
  explicit live_client(const served_run& run, int receive_buffer = 0)
    : raw_client(run.port(), receive_buffer) {
    send(run.request("GET /api/v1/live",
                     headers()
                       + "Sec-WebSocket-Protocol: troupe.v1\r\n"
                         "Origin: http://"
                       + run.host() + "\r\n" + run.view_cookie()));
    begin = receive_answer();
  }

  static std::string headers() {
    return "Upgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  }

  live_frame receive_frame() {
    live_frame got;
    const auto start = receive(2);
    if (start.size() < 2)
      return got;
    got.code = start[0] & 15;
    got.is_last = (start[0] & 0x80) != 0;
    std::size_t bytes = start[1] & 127;
    if (bytes >= 126) {
      const auto long_bytes = receive(bytes == 126 ? 2 : 8);
      bytes = 0;
      for (const auto byte : long_bytes)
        bytes = bytes << 8 | static_cast<unsigned char>(byte);
    }
    got.payload = receive(bytes);
    return got;
  }

  /// The next binary message. Answers pings. Empty at the end.
  std::string receive_message() {
    std::string message;
    for (;;) {
      auto next = receive_frame();
      if (next.code == 9)
        send(frame_bytes(0x8a, next.payload));
      if (next.code == 2 || next.code == 0) {
        message += next.payload;
        if (next.is_last)
          return message;
      }
      if (next.code == 8 || next.code == -1)
        return "";
    }
  }

  /// The number in the next frame that closes the connection, which it answers.
  /// 0: it just ends.
  int receive_close() {
    for (;;) {
      const auto next = receive_frame();
      if (next.code == -1)
        return 0;
      if (next.code != 8 || next.payload.size() < 2)
        continue;
      send(frame_bytes(0x88, next.payload));
      return static_cast<unsigned char>(next.payload[0]) << 8
             | static_cast<unsigned char>(next.payload[1]);
    }
  }

  raw_answer begin; ///< of the request for the WebSocket
};

} // namespace troupe::dashboard::test
