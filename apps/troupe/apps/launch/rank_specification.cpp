// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_specification.hpp>

#include <troupe/apps/launch/cbor_frame.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>

namespace troupe::apps {

std::string to_bytes(const rank_specification& s) {
  return to_frame({{"command", s.command},
                   {"variables", s.variables},
                   {"folder", s.folder},
                   {"meeting", s.meeting},
                   {"credentials", s.credentials},
                   {"grace_ms", s.grace.count()},
                   {"part", s.part},
                   {"parts", s.parts}});
}

rank_specification read_specification(int fd) {
  const auto cbor = read_frame(fd);
  try {
    rank_specification s;
    s.command = cbor.at("command").get<std::vector<std::string>>();
    s.variables = cbor.at("variables").get<std::vector<std::string>>();
    s.folder = cbor.at("folder");
    s.meeting = cbor.at("meeting");
    s.credentials = cbor.at("credentials");
    s.grace =
      std::chrono::milliseconds(cbor.at("grace_ms").get<std::int64_t>());
    s.part = cbor.at("part");
    s.parts = cbor.at("parts");
    if (!s.command.empty() && (s.parts == 0 || s.part < s.parts))
      return s;
  } catch (const nlohmann::json::exception&) { // refused below
  }
  refuse_frame();
}

} // namespace troupe::apps
