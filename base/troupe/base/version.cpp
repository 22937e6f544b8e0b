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

/// A part that is built only where what it needs is installed.
struct optional_part {
  std::string_view name;
  bool is_built;
};

constexpr optional_part optional_parts[] = {
  {"dashboard", TROUPE_WITH_DASHBOARD},
  {"gloo", TROUPE_WITH_GLOO},
  {"mpi", TROUPE_WITH_MPI},
  {"cuda", TROUPE_WITH_CUDA}};

/// "; with a, b": those that are built, or "; without c": the others.
std::string list_parts(bool built) {
  std::string text;
  for (const auto& [name, is_built] : optional_parts)
    if (is_built == built)
      text += (text.empty() ? (built ? "; with " : "; without ") : ", ")
              + std::string{name};
  return text;
}

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
  return text + list_parts(true) + list_parts(false);
}

} // namespace troupe
