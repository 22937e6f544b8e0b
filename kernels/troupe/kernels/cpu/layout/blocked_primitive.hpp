// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/conv/filter_copy.hpp>
#include <troupe/kernels/cpu/conv/filter_pack.hpp>
#include <troupe/kernels/kernel.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace troupe::cpu {

/// The process's oneDNN engine; an immutable handle.
const dnnl::engine& cpu_engine();

/// Attributes for all primitives: the caller supplies the scratch memory.
/// oneDNN's own would belong to the thread that made the primitive.
dnnl::primitive_attr user_scratchpad();

/// A oneDNN primitive with two inputs and one output. Outside, they have the
/// caller's layouts; inside, those that the primitive chose. Thread rule: one
/// thread at a time, any thread; uses no other threads.
class blocked_primitive {
public:
  struct operand {
    int argument = 0;         ///< DNNL_ARG_...
    dnnl::memory::desc outer; ///< the caller's layout
    dnnl::memory::desc inner; ///< the primitive's layout
  };

  blocked_primitive() = default;
  blocked_primitive(dnnl::primitive primitive,
                    const dnnl::memory::desc& scratchpad,
                    const std::array<operand, 2>& inputs,
                    const operand& output);

  /// Throws dnnl::error.
  void run(const kernel_context& ctx, const void* a, const void* b, void* out);

  /// How the second input is packed, if it is a filter that needs packing in a
  /// way that filter_pack.hpp supports; else null.
  const filter_pack* pack() const noexcept;
  /// As `run`, with a second input that `pack` has packed.
  void run_packed(const kernel_context& ctx, const void* a, const void* packed,
                  void* out);

private:
  // An operand, and its conversion if the two layouts differ.
  struct port {
    port() = default;
    port(const operand& o, bool is_output);
    void convert(dnnl::stream& queue, std::byte* scratchpad);
    std::size_t inner_bytes() const;
    bool reorders() const { return converts && !copy && !pack; }

    int argument = 0;
    bool converts = false;
    bool is_output = false;
    dnnl::memory outer;
    dnnl::memory inner;
    std::optional<filter_copy> copy; // else:
    std::optional<filter_pack> pack; // else the library's reorder
    dnnl::reorder reorder;
    dnnl::memory reorder_scratchpad;
  };

  static void bind(port& p, void* data, std::byte*& scratch);
  void execute(std::byte* scratchpad);

  dnnl::primitive primitive_;
  std::array<port, 2> inputs_;
  port output_;
  dnnl::memory scratchpad_;
  std::size_t scratch_bytes_ = 0;
  dnnl::stream queue_;
};

} // namespace troupe::cpu
