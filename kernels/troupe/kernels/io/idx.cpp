// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/idx.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

namespace troupe {

namespace {

struct idx_type {
  unsigned char code;
  dtype type;
};

constexpr std::array<idx_type, 6> idx_types{{
  {0x08, dtype::uint8},
  {0x09, dtype::int8},
  {0x0B, dtype::int16},
  {0x0C, dtype::int32},
  {0x0D, dtype::float32},
  {0x0E, dtype::float64},
}};

[[noreturn]] void bad(const std::filesystem::path& path,
                      const std::string& why) {
  throw error(errc::bad_file, path.string() + ": " + why);
}

struct magic_number {
  dtype type;
  std::size_t rank;
};

magic_number read_magic(input_file& file) {
  std::array<unsigned char, 4> magic{};
  file.read(magic.data(), magic.size(), "the IDX header");
  if (magic[0] == 0x1f && magic[1] == 0x8b)
    bad(file.path(), "is compressed by gzip; unpack it first");
  const auto* found =
    std::find_if(idx_types.begin(), idx_types.end(),
                 [&](const idx_type& entry) { return entry.code == magic[2]; });
  if (magic[0] != 0 || magic[1] != 0 || found == idx_types.end()
      || magic[3] == 0 || magic[3] > shape::max_rank)
    bad(file.path(), "not an IDX file");
  return {found->type, magic[3]};
}

shape read_dims(input_file& file, std::size_t rank) {
  std::vector<unsigned char> bytes(rank * 4);
  file.read(bytes.data(), bytes.size(), "the IDX header");
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < bytes.size(); i += 4)
    dims.push_back(std::int64_t{bytes[i]} << 24 | bytes[i + 1] << 16
                   | bytes[i + 2] << 8 | bytes[i + 3]);
  return shape(dims);
}

/// The size of the elements in bytes; the largest number if it overflows.
std::uint64_t data_bytes(const shape& dims, dtype type) {
  std::uint64_t bytes = size_of(type);
  for (auto extent : dims)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent),
                               &bytes))
      return std::numeric_limits<std::uint64_t>::max();
  return bytes;
}

/// IDX elements are big endian.
void swap_bytes(tensor& value) {
  auto element = size_of(value.type());
  for (auto *at = value.raw(), *end = at + value.bytes(); at != end;
       at += element)
    std::reverse(at, at + element);
}

void expect_bytes(const tensor& value, std::size_t rank,
                  const std::filesystem::path& path) {
  if (value.type() != dtype::uint8 || value.dims().rank() != rank)
    bad(path, "expected uint8 of rank " + std::to_string(rank) + ", found "
                + std::string(to_string(value.type())) + " "
                + to_string(value.dims()));
}

labelled_images read_part(const std::filesystem::path& folder,
                          const std::string& prefix, arena& memory) {
  auto image_path = folder / (prefix + "-images-idx3-ubyte");
  auto label_path = folder / (prefix + "-labels-idx1-ubyte");
  labelled_images part{read_idx(image_path, memory),
                       read_idx(label_path, memory)};
  expect_bytes(part.images, 3, image_path);
  expect_bytes(part.labels, 1, label_path);
  if (part.images.dims()[0] != part.labels.dims()[0])
    bad(label_path, std::to_string(part.labels.dims()[0]) + " labels for "
                      + std::to_string(part.images.dims()[0]) + " images");
  return part;
}

} // namespace

tensor read_idx(const std::filesystem::path& path, arena& memory) {
  input_file file(path);
  auto [type, rank] = read_magic(file);
  auto dims = read_dims(file, rank);
  auto bytes = data_bytes(dims, type);
  if (bytes != file.remaining())
    bad(path, "shape " + to_string(dims) + " of " + std::string(to_string(type))
                + " needs " + std::to_string(bytes) + " bytes of data, found "
                + std::to_string(file.remaining()));
  auto result =
    naming_file(path.string(),
                // clang 16 cannot capture a structured binding
                [&, type = type] { return tensor::make(memory, dims, type); });
  file.read(result.raw(), bytes);
  if (size_of(type) > 1)
    swap_bytes(result);
  return result;
}

image_dataset read_idx_folder(const std::filesystem::path& folder,
                              arena& memory) {
  return {read_part(folder, "train", memory),
          read_part(folder, "t10k", memory)};
}

} // namespace troupe
