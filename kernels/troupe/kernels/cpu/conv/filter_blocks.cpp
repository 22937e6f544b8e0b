// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/conv/channel_square.hpp>
#include <troupe/kernels/cpu/conv/filter_copy.hpp>
#include <troupe/kernels/cpu/conv/filter_pack.hpp>
#include <troupe/kernels/cpu/layout/layout_traffic.hpp>

#include <troupe/base/assert.hpp>

#include <optional>
#include <string>

namespace troupe::cpu {

namespace {

using format_tag = dnnl::memory::format_tag;

dnnl::memory::desc desc_of(const shape& dims, format_tag format) {
  return {{dims.begin(), dims.end()}, dnnl::memory::data_type::f32, format};
}

class filter_layout final : public layout {
public:
  explicit filter_layout(const shape& dims)
    : dims_(dims),
      copy_(filter_copy::between(desc_of(dims, format_tag::OIhw16i16o),
                                 desc_of(dims, format_tag::oihw))),
      pack_(filter_pack::between(desc_of(dims, format_tag::oihw),
                                 desc_of(dims, format_tag::OIhw16i16o))) {
    TROUPE_ASSERT(copy_ && pack_);
  }

  const shape& dims() const noexcept { return dims_; }

  std::size_t bytes() const noexcept override { return pack_->packed_bytes(); }

  bool equals(const layout& other) const noexcept override {
    const auto* same = dynamic_cast<const filter_layout*>(&other);
    return same && same->dims_ == dims_;
  }

  bool is_permutation() const noexcept override { return true; }

  std::string name() const override { return "OIhw16i16o"; }

  void to_plain(const tensor& source, tensor& target, stream*) const override {
    copy_->run(source.data<float>(), target.data<float>());
    add_layout_traffic(2 * bytes());
  }

  void from_plain(const tensor& source, tensor& target) const {
    pack_->run(source.data<float>(), target.raw());
    add_layout_traffic(2 * bytes());
  }

private:
  shape dims_;
  std::optional<filter_copy> copy_;
  std::optional<filter_pack> pack_;
};

const filter_layout* layout_of(const tensor& value) noexcept {
  return dynamic_cast<const filter_layout*>(value.format().get());
}

} // namespace

bool fits_filter_blocks(const shape& dims) noexcept {
  constexpr auto channels = channel_square::channels;
  return dims.rank() == 4 && dims[0] > 0 && dims[0] % channels == 0
         && dims[1] > 0 && dims[1] % channels == 0 && dims.numel(2, 4) > 0
         && dims.numel(2, 4) <= most_taps;
}

std::shared_ptr<const layout> filter_blocks(const shape& dims) {
  TROUPE_ASSERT(fits_filter_blocks(dims));
  return std::make_shared<const filter_layout>(dims);
}

bool lies_in_filter_blocks(const tensor& value) noexcept {
  return layout_of(value) != nullptr;
}

tensor filter_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index) {
  const variable& var = ctx.input_variable(slot, index);
  if (var.is_tensor() && lies_in_filter_blocks(var.as_tensor()))
    return var.as_tensor();
  return float_input(ctx, slot, index);
}

tensor in_filter_blocks(const tensor& plain, std::string_view slot,
                        const std::shared_ptr<const layout>& format,
                        arena& memory) {
  const auto& blocks = static_cast<const filter_layout&>(*format);
  require_shape(slot, plain.dims(), blocks.dims());
  tensor packed(plain.dims(), plain.type(), memory.allocate(blocks.bytes()),
                format);
  blocks.from_plain(plain, packed);
  return packed;
}

} // namespace troupe::cpu
