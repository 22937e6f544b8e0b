// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

/// Compiles the function of a hot loop for AVX-512, for AVX2 with FMA, and for
/// the build's own target; the dynamic loader picks the one for the machine. It
/// goes before a plain function (no template, not inline). Not used under
/// sanitizers, whose runtime is not ready when the loader picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)            \
  && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#ifdef TROUPE_NO_AVX512
#define TROUPE_SIMD __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TROUPE_SIMD                                                            \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#define TROUPE_SIMD_TARGET(arch) [[gnu::target("arch=" arch), gnu::flatten]]
#else
#define TROUPE_SIMD
#define TROUPE_SIMD_TARGET(arch)
#endif

/// For helpers that hot loops call: they are inlined, so that they are compiled
/// for the caller's target.
#define TROUPE_INLINE [[gnu::always_inline]] inline

namespace troupe {
struct bfloat16;
}

namespace troupe::cpu {

/// The instruction sets that hot loops are compiled for.
enum class vector_level : unsigned char { build, v3, v4 };

/// The best level that this machine has and this build uses. Files that are
/// compiled for one level choose by it, under sanitizers, too.
vector_level machine_vectors() noexcept;

template <class Loop, class... Args>
TROUPE_SIMD_TARGET("x86-64-v4")
void run_for_v4(Args... args) {
  Loop::run(args...);
}

template <class Loop, class... Args>
TROUPE_SIMD_TARGET("x86-64-v3")
void run_for_v3(Args... args) {
  Loop::run(args...);
}

template <class T>
constexpr bool fills_vectors =
  std::is_same_v<T, const float*> || std::is_same_v<T, const bfloat16*>;

/// TROUPE_SIMD for templates: calls `Loop::run(args...)`, a static function
/// marked TROUPE_INLINE, which is compiled with all its callees for the
/// machine's vectors. Loops over dtypes other than float32 and bfloat16 are
/// compiled only for the build's target.
template <class Loop, class T, class... Args>
void run_simd(T* out, Args... args) {
  if constexpr (fills_vectors<const T*> || (fills_vectors<Args> || ...)) {
    switch (machine_vectors()) {
    case vector_level::v4: return run_for_v4<Loop>(out, args...);
    case vector_level::v3: return run_for_v3<Loop>(out, args...);
    case vector_level::build: break;
    }
  }
  Loop::run(out, args...);
}

} // namespace troupe::cpu
