// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/reduce_kernels.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// One build serves every x86-64 machine: the loops are compiled once for each
// instruction set and chosen when the program is loaded. Sanitizers cannot run
// that early, so their builds have the plain form alone. AVX-512 gains nothing
// here: memory, or the one store per cycle, is the limit.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)            \
  && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define TROUPE_VECTOR_CLONES                                                   \
  __attribute__((flatten, target_clones("avx2", "default")))
#else
#define TROUPE_VECTOR_CLONES
#endif

namespace troupe::comm::local {

namespace {

constexpr std::size_t lanes = 8;
template <class T>
using vector_of [[gnu::vector_size(lanes * sizeof(T))]] = T;

using floats = vector_of<float>;
using words = vector_of<std::uint32_t>;
using halves = vector_of<std::uint16_t>;
using integers = vector_of<std::int32_t>;
using long_integers = vector_of<std::int64_t>;

constexpr std::size_t cache_line = 64;
constexpr std::size_t stream_bytes = 16; // size of one non-temporal store
// Prefetch distance of each source.
constexpr std::size_t prefetch_bytes = 2048;

// Branch-free conversions between float and half types. They round as the
// constructors of float16 and bfloat16 do.
floats widen_half(halves half) noexcept {
  auto word = __builtin_convertvector(half, words);
  auto magnitude = (word & 0x7fffu) << 13;
  // The product moves the exponent's bias from 15 to 127, subnormals included.
  auto scaled =
    reinterpret_cast<words>(reinterpret_cast<floats>(magnitude) * 0x1p112f);
  auto special = (word & 0x7c00u) == 0x7c00u ? words{} + 0x7f80'0000u : words{};
  return reinterpret_cast<floats>(scaled | special | (word & 0x8000u) << 16);
}

halves narrow_half(floats value) noexcept {
  auto word = reinterpret_cast<words>(value);
  auto magnitude = word & 0x7fff'ffffu;
  // Adding 0.5 lets the FPU round: the sum's last bit weighs 2^-24, which is
  // the last bit of a subnormal half.
  auto subnormal =
    reinterpret_cast<words>(reinterpret_cast<floats>(magnitude) + 0.5f)
    - std::bit_cast<std::uint32_t>(0.5f);
  auto odd = (magnitude >> 13) & 1u;
  auto normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
  auto half = magnitude < 0x3880'0000u ? subnormal : normal;
  half = magnitude >= 0x4780'0000u ? words{} + 0x7c00u : half;
  auto nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
  half = magnitude > 0x7f80'0000u ? nan : half;
  return __builtin_convertvector(half | ((word >> 16) & 0x8000u), halves);
}

floats widen_bfloat(halves upper) noexcept {
  return reinterpret_cast<floats>(__builtin_convertvector(upper, words) << 16);
}

halves narrow_bfloat(floats value) noexcept {
  auto word = reinterpret_cast<words>(value);
  auto nan = (word & 0x7fff'ffffu) > 0x7f80'0000u;
  auto rounded = word + 0x7fffu + ((word >> 16) & 1u);
  auto kept = nan ? word | 0x0040'0000u : rounded;
  return __builtin_convertvector(kept >> 16, halves);
}

// How elements of a dtype are stored and added.
struct float32_element {
  using stored = floats;
  using merged = floats;
  static merged load(stored value) noexcept { return value; }
  static stored store(merged value) noexcept { return value; }
};

struct float16_element {
  using stored = halves;
  using merged = floats;
  static merged load(stored value) noexcept { return widen_half(value); }
  static stored store(merged value) noexcept { return narrow_half(value); }
};

struct bfloat16_element {
  using stored = halves;
  using merged = floats;
  static merged load(stored value) noexcept { return widen_bfloat(value); }
  static stored store(merged value) noexcept { return narrow_bfloat(value); }
};

struct int32_element {
  using stored = integers;
  using merged = long_integers;
  static merged load(stored value) noexcept {
    return __builtin_convertvector(value, merged);
  }
  static stored store(merged value) noexcept {
    return __builtin_convertvector(value, stored);
  }
};

template <class Vector>
Vector read(const std::byte* from) noexcept {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <class Vector>
void write(std::byte* to, Vector value) noexcept {
  std::memcpy(to, &value, sizeof(value));
}

// Elements that are added at a time. They are separate variables, so that they
// stay in registers from the first source to the destination.
template <class Element>
struct tile {
  using stored = typename Element::stored;
  using merged = typename Element::merged;
  static constexpr std::size_t elements = 4 * lanes;
  static constexpr std::size_t bytes = 4 * sizeof(stored);

  merged a, b, c, d;

  static merged load(const std::byte* from, std::size_t vector) noexcept {
    return Element::load(read<stored>(from + vector * sizeof(stored)));
  }
  explicit tile(const std::byte* from) noexcept
    : a(load(from, 0)), b(load(from, 1)), c(load(from, 2)), d(load(from, 3)) {}

  void store(std::byte* to) const noexcept {
    write(to, Element::store(a));
    write(to + sizeof(stored), Element::store(b));
    write(to + 2 * sizeof(stored), Element::store(c));
    write(to + 3 * sizeof(stored), Element::store(d));
  }
  void add(const tile& other) noexcept {
    a += other.a;
    b += other.b;
    c += other.c;
    d += other.d;
  }
};

void prefetch(const std::byte* address, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; i += cache_line)
    __builtin_prefetch(address + i);
}

// True if a block can be written with non-temporal stores, which need whole,
// aligned vectors.
bool streams(const destination& to, std::size_t offset,
             std::size_t bytes) noexcept {
  auto address = reinterpret_cast<std::uintptr_t>(to.data) + offset;
  return to.stream && (address | bytes) % stream_bytes == 0;
}

void stream_block(std::byte* to, const std::byte* from,
                  std::size_t bytes) noexcept {
#if defined(__SSE2__)
  for (std::size_t i = 0; i < bytes; i += stream_bytes)
    _mm_stream_si128(
      reinterpret_cast<__m128i*>(to + i),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
  std::memcpy(to, from, bytes);
#endif
}

// Non-temporal stores are weakly ordered. The fence makes them visible before
// other threads are notified that this range is done.
void finish_stores(const destination& to) noexcept {
#if defined(__SSE2__)
  if (to.stream)
    _mm_sfence();
#else
  (void)to;
#endif
}

struct add_range {
  std::span<const std::byte* const> sources;
  destination to;
  std::size_t first;
  std::size_t count;
};

template <class Element>
class adder {
public:
  explicit adder(const add_range& range) noexcept : range_(range) {}

  void run() const noexcept {
    auto last = range_.first + range_.count;
    auto i = range_.first;
    for (; i + piece::elements <= last; i += piece::elements)
      add_piece(i);
    if (i < last)
      add_tail(i, last - i);
    finish_stores(range_.to);
  }

private:
  using piece = tile<Element>;
  using stored = typename Element::stored;
  static constexpr auto element_bytes = sizeof(stored) / lanes;

  void add_piece(std::size_t i) const noexcept {
    auto offset = i * element_bytes;
    auto sum = load(range_.sources[0], offset);
    for (auto* source : range_.sources.subspan(1))
      sum.add(load(source, offset));
    store(sum, range_.to, offset);
  }

  // The last elements also use a whole tile, so that the arithmetic is the same
  // wherever parts are cut.
  void add_tail(std::size_t i, std::size_t count) const noexcept {
    alignas(cache_line) std::byte values[piece::bytes] = {};
    auto offset = i * element_bytes;
    auto bytes = count * element_bytes;
    std::memcpy(values, range_.sources[0] + offset, bytes);
    piece sum{values};
    for (auto* source : range_.sources.subspan(1)) {
      std::memcpy(values, source + offset, bytes);
      sum.add(piece{values});
    }
    sum.store(values);
    std::memcpy(range_.to.data + offset, values, bytes);
  }

  static piece load(const std::byte* source, std::size_t offset) noexcept {
    prefetch(source + offset + prefetch_bytes, piece::bytes);
    return piece{source + offset};
  }

  static void store(const piece& sum, const destination& to,
                    std::size_t offset) noexcept {
    if (!streams(to, offset, piece::bytes))
      return sum.store(to.data + offset);
    alignas(cache_line) std::byte values[piece::bytes];
    sum.store(values);
    stream_block(to.data + offset, values, piece::bytes);
  }

  add_range range_;
};

TROUPE_VECTOR_CLONES
void add_all(dtype type, const add_range& range) noexcept {
  switch (type) {
  case dtype::float32: return adder<float32_element>{range}.run();
  case dtype::float16: return adder<float16_element>{range}.run();
  case dtype::bfloat16: return adder<bfloat16_element>{range}.run();
  case dtype::int32: return adder<int32_element>{range}.run();
  default: return;
  }
}

} // namespace

bool can_add(dtype type) noexcept {
  return type == dtype::float32 || type == dtype::float16
         || type == dtype::bfloat16 || type == dtype::int32;
}

void add(dtype type, std::span<const std::byte* const> sources,
         const destination& to, std::size_t first, std::size_t count) noexcept {
  add_all(type, {sources, to, first, count});
}

void copy(const std::byte* source, const destination& to, std::size_t first,
          std::size_t count) noexcept {
  constexpr std::size_t block = 4096;
  for (auto i = first, last = first + count; i < last; i += block) {
    auto bytes = std::min(block, last - i);
    if (streams(to, i, bytes))
      stream_block(to.data + i, source + i, bytes);
    else
      std::memcpy(to.data + i, source + i, bytes);
  }
  finish_stores(to);
}

std::size_t last_level_cache_bytes() noexcept {
  for (auto level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (auto bytes = sysconf(level); bytes > 0)
      return static_cast<std::size_t>(bytes);
  return std::size_t{32} << 20;
}

} // namespace troupe::comm::local
