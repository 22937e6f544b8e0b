// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/version.hpp>

#include <string_view>

namespace troupe {

namespace {

#if defined(__clang__)
constexpr std::string_view compiler = "Clang " __clang_version__;
#else
constexpr std::string_view compiler = "GCC " __VERSION__;
#endif

} // namespace

const char* version() noexcept {
  return TROUPE_VERSION;
}

// CMake defines what the names in capitals are.
std::string build_facts() {
  constexpr std::string_view sanitizers = TROUPE_SANITIZERS;
  std::string text{compiler};
  text += ", " TROUPE_BUILD_TYPE;
  if (!sanitizers.empty())
    text += ", sanitizers " + std::string{sanitizers};
#if defined(TROUPE_NO_AVX512)
  text += ", without AVX-512";
#endif
  return text;
}

} // namespace troupe
