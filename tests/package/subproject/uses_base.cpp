// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/base/version.hpp>

#include <string>

#if !defined(PARENT)
#error "the flags of the parent are lost"
#endif

int main() {
  const troupe::error e(troupe::errc::not_found, "x");
  const bool is_there = std::string{e.what()}.find('x') != std::string::npos;
  return is_there && std::string{troupe::version()} == TROUPE_VERSION ? 0 : 1;
}
