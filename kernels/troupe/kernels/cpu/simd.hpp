// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Compiles a hot loop's function for AVX-512, AVX2 with FMA, and the build's
/// own target; the loader picks one by the machine. It goes before a plain
/// function (no template, not inline). Off under sanitizers, whose runtime is
/// not ready when the loader picks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)            \
  && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TROUPE_SIMD                                                            \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TROUPE_SIMD
#endif

/// Helpers that hot loops call: inlined, so that they are compiled for the
/// caller's target.
#define TROUPE_INLINE [[gnu::always_inline]] inline
