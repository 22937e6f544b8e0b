// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/cbor_frame.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/base/version.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <unistd.h>

namespace troupe::apps {

namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t longest_frame = std::size_t{64} << 20;
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

/// Refuses CBOR whose values are deeper than those of a frame. The
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

void require_version(const std::string& version) {
  if (version != TROUPE_VERSION)
    throw error(errc::bad_file,
                "troupe launch has version " + one_line(version)
                  + ", but on this host troupe has version " TROUPE_VERSION);
}

} // namespace

void refuse_frame() {
  throw error(errc::bad_file, "standard input has not what troupe launch tells "
                              "a rank: only troupe launch --hosts can start "
                              "this command");
}

std::string to_frame(nlohmann::json content) {
  content["version"] = TROUPE_VERSION;
  const auto cbor = nlohmann::json::to_cbor(content);
  return encode_length(cbor.size()) + std::string(cbor.begin(), cbor.end());
}

nlohmann::json read_frame(int fd) {
  const auto length = decode_length(read_whole(fd, length_bytes));
  if (length > longest_frame)
    refuse_frame();
  const auto bytes = read_whole(fd, length);
  depth_check depth;
  if (!nlohmann::json::sax_parse(bytes, &depth,
                                 nlohmann::json::input_format_t::cbor))
    refuse_frame();
  try {
    auto content = nlohmann::json::from_cbor(bytes);
    require_version(content.at("version"));
    return content;
  } catch (const nlohmann::json::exception&) {
    refuse_frame();
  }
}

} // namespace troupe::apps
