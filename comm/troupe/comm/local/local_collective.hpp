// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/collective.hpp>
#include <troupe/comm/local/reduce_kernels.hpp>

#include <vector>

namespace troupe::comm::local {

/// Collectives between devices whose memory the CPU can read and write. Every
/// part merges its range of all ranks' tensors in one pass, element by element
/// in rank order. Results therefore do not depend on the number of parts, on
/// the threads that run them or on their order. They are deterministic even if
/// that is not requested, because no other order is faster.
class local_collective final : public collective {
public:
  /// Throws error(invalid_argument) for no ranks or a root out of range.
  local_collective(std::size_t ranks, const collective_options& options);

  void bind(std::span<const tensor> inputs, std::span<tensor> outputs) override;
  std::size_t parts() const noexcept override { return parts_; }
  void run_part(std::size_t part) noexcept override;
  void finish() override;

private:
  // `segment_elements_` elements with their own sources and destinations: the
  // whole tensor, or one rank's slice. Sources and destinations are ranges of
  // the lists below, whose pointers point to the segment's first element.
  struct segment {
    std::size_t first_source, sources;
    std::size_t first_destination, destinations;
  };

  bool shares() const noexcept;
  void choose_writers(std::span<const tensor> outputs);
  void add_segments(std::span<const tensor> inputs,
                    std::span<const tensor> outputs);
  void add_segment(std::span<const tensor> inputs,
                   std::span<const tensor> outputs, std::size_t index);
  void add_sources(std::span<const tensor> inputs, std::size_t index);
  void add_destinations(std::span<const tensor> outputs, std::size_t index);
  void drop_copies_onto_themselves(segment& s);
  void choose_stores();
  void cut_parts();
  void run_segment(const segment& s, std::size_t first,
                   std::size_t count) const noexcept;
  void forget() noexcept;

  std::size_t ranks_;
  collective_options options_;
  std::size_t cache_bytes_;

  std::span<tensor> outputs_;
  tensor shared_result_;
  std::vector<std::size_t> writers_; // ranks whose outputs get elements
  merge_rule rule_;
  std::vector<segment> segments_;
  std::vector<const std::byte*> sources_;
  std::vector<destination> destinations_;
  std::size_t segment_elements_ = 0;
  std::size_t part_elements_ = 0;
  std::size_t parts_ = 0; // 0: nothing is bound
};

} // namespace troupe::comm::local
