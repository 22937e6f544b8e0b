// SPDX-License-Identifier: Apache-2.0
// Compiled for x86-64-v3, so inline functions of the standard library must not
// be used here.
#include <troupe/kernels/cpu/pool/pool_2x2.hpp>

#include <utility>

namespace troupe::cpu {

namespace {

using index = std::int64_t;

// Vectors of `Lanes` output pixels of a row.
template <int Lanes>
struct lane_types {
  typedef float values __attribute__((vector_size(Lanes * 4)));
  typedef float loose
    __attribute__((vector_size(Lanes * 4), aligned(4), may_alias));
};

// Every second value of two consecutive vectors, from `First` on.
template <int First, class V, int... I>
V every_second(const V& low, const V& high, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(low, high, (First + 2 * I)...);
}

// Interleaves the values of two vectors, from `First` on.
template <int First, class V, int... I>
V in_turns(const V& even, const V& odd, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
  return __builtin_shufflevector(even, odd, (First + I / 2 + I % 2 * lanes)...);
}

template <int Lanes>
struct pixel_pairs {
  using values = typename lane_types<Lanes>::values;
  using loose = typename lane_types<Lanes>::loose;
  using each = std::make_integer_sequence<int, Lanes>;

  values even;
  values odd;

  static pixel_pairs load(const float* from) {
    const values low = *reinterpret_cast<const loose*>(from);
    const values high = *reinterpret_cast<const loose*>(from + Lanes);
    return {every_second<0>(low, high, each{}),
            every_second<1>(low, high, each{})};
  }

  void store(float* to) const {
    *reinterpret_cast<loose*>(to) = in_turns<0>(even, odd, each{});
    *reinterpret_cast<loose*>(to + Lanes) =
      in_turns<Lanes / 2>(even, odd, each{});
  }
};

// The maximum of a window that covers only padding.
constexpr float lowest = -3.402823466e+38f;

template <class V>
auto is_larger(const V& v, const V& best) {
  return (v > best) | (v != v);
}

template <class V>
V larger(const V& best, const V& v) {
  return is_larger(v, best) ? v : best;
}

template <int Lanes>
void row_of_maxima(float* out, const float* x, index cols, index c) {
  using pairs = pixel_pairs<Lanes>;
  const auto above = pairs::load(x + 2 * c);
  const auto below = pairs::load(x + 2 * cols + 2 * c);
  auto best = larger(typename pairs::values{} + lowest, above.even);
  best = larger(larger(larger(best, above.odd), below.even), below.odd);
  *reinterpret_cast<typename pairs::loose*>(out + c) = best;
}

// The gradient goes to the last element that is larger than all before it in
// its window. So the elements are visited backwards, and the first winner takes
// it.
template <int Lanes>
void row_of_gradients(float* dx, const float* x, const float* dout, index cols,
                      index c) {
  using pairs = pixel_pairs<Lanes>;
  using values = typename pairs::values;
  const auto above = pairs::load(x + 2 * c);
  const auto below = pairs::load(x + 2 * cols + 2 * c);
  const values none{};
  const values bottom = none + lowest;
  const values best0 = larger(bottom, above.even);
  const values best1 = larger(best0, above.odd);
  const values best2 = larger(best1, below.even);
  values left = *reinterpret_cast<const typename pairs::loose*>(dout + c);
  const auto give = [&](const values& v, const values& best) {
    const auto wins = is_larger(v, best);
    const values given = wins ? left : none;
    left = wins ? none : left;
    return given;
  };
  pairs dbelow;
  pairs dabove;
  dbelow.odd = give(below.odd, best2);
  dbelow.even = give(below.even, best1);
  dabove.odd = give(above.odd, best0);
  dabove.even = give(above.even, bottom);
  dabove.store(dx + 2 * c);
  dbelow.store(dx + 2 * cols + 2 * c);
}

// Calls `use(c)` for vectors of `lanes` that cover a row. The last may overlap
// the one before.
template <class Use>
void cover_row(index cols, index lanes, Use use) {
  index c = 0;
  for (; c + lanes <= cols; c += lanes)
    use(c);
  if (c < cols)
    use(cols - lanes);
}

template <int Lanes>
void maxima(float* out, const float* x, index rows, index cols) {
  for (index r = 0; r < rows; ++r)
    cover_row(cols, Lanes, [&](index c) {
      row_of_maxima<Lanes>(out + r * cols, x + 4 * r * cols, cols, c);
    });
}

template <int Lanes>
void gradients(float* dx, const float* x, const float* dout, index rows,
               index cols) {
  for (index r = 0; r < rows; ++r)
    cover_row(cols, Lanes, [&](index c) {
      row_of_gradients<Lanes>(dx + 4 * r * cols, x + 4 * r * cols,
                              dout + r * cols, cols, c);
    });
}

} // namespace

void max_2x2(float* out, const float* x, std::int64_t rows, std::int64_t cols) {
  if (cols < 8)
    maxima<4>(out, x, rows, cols);
  else
    maxima<8>(out, x, rows, cols);
}

void max_2x2_gradient(float* dx, const float* x, const float* dout,
                      std::int64_t rows, std::int64_t cols) {
  if (cols < 8)
    gradients<4>(dx, x, dout, rows, cols);
  else
    gradients<8>(dx, x, dout, rows, cols);
}

} // namespace troupe::cpu
