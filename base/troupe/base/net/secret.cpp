// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/net/secret.hpp>

#include <troupe/base/error.hpp>

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace troupe {

secret random_secret() {
  secret made{};
  // Reads of at most 256 bytes are never cut short.
  if (::getrandom(made.data(), made.size(), 0)
      != static_cast<ssize_t>(made.size()))
    throw error(errc::io_failure,
                "no random numbers: " + std::system_category().message(errno));
  return made;
}

bool equal_secrets(const secret& one, const secret& other) noexcept {
  auto differ = std::byte{0};
  for (std::size_t i = 0; i < one.size(); ++i)
    differ |= one[i] ^ other[i];
  return differ == std::byte{0};
}

} // namespace troupe
