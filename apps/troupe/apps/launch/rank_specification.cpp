// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_specification.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t longest_specification = std::size_t{64} << 20;

/// Reads exactly so many bytes.
std::string read_whole(int fd, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const auto got = ::read(fd, text.data() + done, bytes - done);
    if (got > 0)
      done += static_cast<std::size_t>(got);
    else if (got == 0)
      throw error(errc::io_failure,
                  "troupe launch ended before it had told what to start");
    else if (errno != EINTR)
      throw error(errc::io_failure,
                  std::string("cannot read what troupe launch tells: ")
                    + std::strerror(errno));
  }
  return text;
}

std::size_t decode_length(const std::string& bytes) {
  std::size_t length = 0;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
    length = length << 8 | static_cast<unsigned char>(*byte);
  return length;
}

std::string encode_length(std::size_t length) {
  std::string bytes;
  for (std::size_t i = 0; i < length_bytes; ++i, length >>= 8)
    bytes += static_cast<char>(length & 0xff);
  return bytes;
}

[[noreturn]] void refuse_specification() {
  throw error(errc::bad_file, "standard input has not what troupe launch tells "
                              "a rank: only troupe launch --hosts can start "
                              "this command");
}

void require_version(const std::string& version) {
  if (version != TROUPE_VERSION)
    throw error(errc::bad_file,
                "troupe launch has version " + one_line(version)
                  + ", but on this host troupe has version " TROUPE_VERSION);
}

rank_specification decode_specification(const std::string& bytes) {
  const auto cbor = nlohmann::json::from_cbor(bytes);
  require_version(cbor.at("version"));
  rank_specification s;
  s.command = cbor.at("command").get<std::vector<std::string>>();
  s.variables = cbor.at("variables").get<std::vector<std::string>>();
  s.folder = cbor.at("folder");
  s.credentials = cbor.at("credentials");
  s.grace = std::chrono::milliseconds(cbor.at("grace_ms").get<std::int64_t>());
  s.part = cbor.at("part");
  s.parts = cbor.at("parts");
  if (s.command.empty() || (s.parts != 0 && s.part >= s.parts))
    refuse_specification();
  return s;
}

} // namespace

std::string to_bytes(const rank_specification& s) {
  // Not the text of JSON, which would need valid UTF-8.
  const auto cbor =
    nlohmann::json::to_cbor(nlohmann::json{{"version", TROUPE_VERSION},
                                           {"command", s.command},
                                           {"variables", s.variables},
                                           {"folder", s.folder},
                                           {"credentials", s.credentials},
                                           {"grace_ms", s.grace.count()},
                                           {"part", s.part},
                                           {"parts", s.parts}});
  return encode_length(cbor.size()) + std::string(cbor.begin(), cbor.end());
}

rank_specification read_specification(int fd) {
  const auto length = decode_length(read_whole(fd, length_bytes));
  if (length > longest_specification)
    refuse_specification();
  const auto bytes = read_whole(fd, length);
  try {
    return decode_specification(bytes);
  } catch (const nlohmann::json::exception&) {
    refuse_specification();
  }
}

} // namespace troupe::apps
