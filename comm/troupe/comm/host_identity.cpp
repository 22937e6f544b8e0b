// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/host_identity.hpp>

#include <troupe/base/fingerprint.hpp>

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace troupe::comm {

namespace {

/// The random number that the kernel takes at each start of the machine.
std::string boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string text;
  std::getline(file, text);
  return text;
}

/// "net:[4026531840]".
std::string network_of_process() {
  std::array<char, 64> text{};
  return ::readlink("/proc/self/ns/net", text.data(), text.size() - 1) > 0
           ? text.data()
           : "";
}

std::string host_name() {
  std::array<char, 256> text{};
  return ::gethostname(text.data(), text.size() - 1) == 0 ? text.data() : "";
}

} // namespace

std::uint64_t host_identity() {
  fingerprint of;
  for (const auto& part : {boot_id(), network_of_process(), host_name()}) {
    const auto bytes = part.size();
    of.add(&bytes, sizeof bytes);
    of.add(part.data(), bytes);
  }
  return of.value();
}

} // namespace troupe::comm
