// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/rank_specification.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t longest_specification = std::size_t{64} << 20;
constexpr std::size_t most_at_once = std::size_t{64} << 10;

/// Reads exactly so many bytes. Takes memory as they come.
std::string read_whole(int fd, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    const auto done = text.size();
    text.resize(std::min(bytes, done + most_at_once));
    const auto got = ::read(fd, text.data() + done, text.size() - done);
    text.resize(got > 0 ? done + static_cast<std::size_t>(got) : done);
    if (got == 0)
      throw error(errc::io_failure,
                  "troupe launch ended before it had told what to start");
    if (got < 0 && errno != EINTR)
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

/// Refuses CBOR whose values are deeper than those of a specification. The
/// library's reader calls itself for each level.
class depth_check final : public nlohmann::json_sax<nlohmann::json> {
public:
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception&) override {
    return false;
  }

private:
  bool enter() { return ++depth_ <= most_depth; }
  bool leave() {
    --depth_;
    return true;
  }

  static constexpr int most_depth = 2; // lists in a map
  int depth_ = 0;
};

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
  depth_check depth;
  if (!nlohmann::json::sax_parse(bytes, &depth,
                                 nlohmann::json::input_format_t::cbor))
    refuse_specification();
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
