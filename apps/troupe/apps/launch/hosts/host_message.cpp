// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/launch/hosts/host_message.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/apps/launch/cbor_frame.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::apps {

namespace {

/// A name that leads nowhere else: it becomes part of a path.
bool is_plain(const std::string& name) {
  return !name.empty() && name.front() != '.'
         && name.find('/') == std::string::npos
         && name.find('\0') == std::string::npos;
}

} // namespace

std::string to_frame_of_meeting(const std::string& name) {
  return to_frame({{"meeting", name}});
}

std::string read_meeting(int fd) {
  const auto cbor = read_frame(fd);
  if (const auto found = cbor.find("meeting");
      found != cbor.end() && found->is_string()
      && is_plain(found->get_ref<const std::string&>()))
    return *found;
  refuse_frame();
}

std::string to_frame_of_epoch(const host_epoch& told) {
  nlohmann::json credentials = nlohmann::json::object();
  for (auto& [member, text] : told.credentials)
    credentials[std::to_string(member)] = text;
  return to_frame(
    {{"epoch", comm::to_text(told.epoch)}, {"credentials", credentials}});
}

host_epoch read_host_epoch(int fd) {
  const auto cbor = read_frame(fd);
  try {
    host_epoch told{comm::parse_epoch(cbor.at("epoch"), "standard input"), {}};
    for (auto& [member, text] : cbor.at("credentials").items())
      told.credentials.emplace(std::stoull(member), text);
    return told;
  } catch (const nlohmann::json::exception&) {
  } catch (const std::logic_error&) { // no number
  }
  refuse_frame();
}

std::string meeting_path(const std::string& name) {
  return actors::run_folder("") + "/" + name;
}

} // namespace troupe::apps
