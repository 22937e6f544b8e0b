// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/npz.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/atomic_file.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/kernels/io/npy.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct discard_archive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct close_member {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
struct free_source {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using archive_ptr = std::unique_ptr<zip_t, discard_archive>;
using member_ptr = std::unique_ptr<zip_file_t, close_member>;
using source_ptr = std::unique_ptr<zip_source_t, free_source>;

/// The most bytes to which deflate can expand one byte.
constexpr std::uint64_t max_ratio = 1032;

constexpr std::string_view suffix = ".npy";

std::string text_of(int code) {
  zip_error_t failure;
  zip_error_init_with_code(&failure, code);
  std::string text = zip_error_strerror(&failure);
  zip_error_fini(&failure);
  return text;
}

[[noreturn]] void bad(const std::string& name, const std::string& why) {
  throw error(errc::bad_file, name + ": " + why);
}

archive_ptr open_archive(const std::filesystem::path& path) {
  int code = 0;
  archive_ptr archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    bad(path.string(), "not an .npz archive: " + text_of(code));
  return archive;
}

/// The directory entry of member `index`, after a check that its sizes are
/// possible.
zip_stat_t stat_member(zip_t* archive, zip_uint64_t index,
                       const std::string& path) {
  constexpr zip_uint64_t needed =
    ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  zip_stat_t info;
  if (zip_stat_index(archive, index, 0, &info) != 0
      || (info.valid & needed) != needed)
    bad(path, "member " + std::to_string(index) + " has no directory entry");
  std::string name = path + ": " + quoted_name(info.name);
  if (info.comp_method != ZIP_CM_STORE && info.comp_method != ZIP_CM_DEFLATE)
    bad(name, "compression method " + std::to_string(info.comp_method)
                + " is not supported");
  auto ratio = info.comp_method == ZIP_CM_STORE ? 1 : max_ratio;
  if (info.size / ratio > info.comp_size)
    bad(name, "claims " + std::to_string(info.size) + " bytes from "
                + std::to_string(info.comp_size) + " compressed ones");
  return info;
}

/// Reads a member from front to back.
class member_reader {
public:
  member_reader(zip_t* archive, zip_uint64_t index, std::string name)
    : name_(std::move(name)), member_(zip_fopen_index(archive, index, 0)) {
    if (!member_)
      bad(name_, zip_strerror(archive));
  }

  const std::string& name() const noexcept { return name_; }

  /// Reads up to `bytes` bytes; fewer only at the end of the member.
  std::size_t read_some(void* target, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      auto got = zip_fread(member_.get(), static_cast<char*>(target) + done,
                           bytes - done);
      if (got < 0)
        bad(name_, zip_file_strerror(member_.get()));
      if (got == 0)
        break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  /// Reads exactly `bytes` bytes.
  void read(void* target, std::size_t bytes) {
    auto got = read_some(target, bytes);
    if (got != bytes)
      bad(name_, "ends " + std::to_string(bytes - got) + " bytes early");
  }

  /// Reads beyond the last byte: there libzip verifies the checksum.
  void finish() {
    char beyond = 0;
    if (read_some(&beyond, 1) != 0)
      bad(name_, "is longer than its directory entry says");
  }

private:
  std::string name_;
  member_ptr member_;
};

/// Checks that header and elements fill the member exactly, before memory is
/// allocated for them.
void check_size(const npy_header& header, std::uint64_t member_size,
                const std::string& name) {
  auto elements = static_cast<std::uint64_t>(header.dims.numel());
  auto room = member_size - header.data_offset;
  auto element = size_of(header.type);
  if (elements != room / element || room % element != 0)
    bad(name, "shape " + to_string(header.dims) + " of "
                + std::string(to_string(header.type)) + " does not fit "
                + std::to_string(room) + " bytes of data");
}

/// A C++ bool must be 0 or 1.
void normalise_booleans(tensor& value) {
  if (value.type() == dtype::boolean)
    for (auto* at = value.raw(); at != value.raw() + value.bytes(); ++at)
      *at = std::byte{*at != std::byte{0}};
}

tensor read_array(member_reader& member, std::uint64_t size, arena& memory) {
  std::string start(std::min<std::uint64_t>(size, max_npy_header), '\0');
  member.read(start.data(), start.size());
  auto header = parse_npy_header(start, member.name());
  check_size(header, size, member.name());
  auto result = tensor::make(memory, header.dims, header.type);
  auto there = start.size() - header.data_offset;
  if (there > 0)
    std::memcpy(result.raw(), start.data() + header.data_offset, there);
  member.read(result.raw() + there, result.bytes() - there);
  member.finish();
  normalise_booleans(result);
  return header.fortran_order ? from_fortran_order(result, memory) : result;
}

/// The name of an array: "image" for "image.npy".
std::string array_name(std::string_view member, const std::string& path) {
  if (!member.ends_with(suffix) || member.size() == suffix.size())
    bad(path, "member " + quoted_name(member) + " is not an .npy array");
  return std::string(member.substr(0, member.size() - suffix.size()));
}

zip_buffer_fragment_t fragment(const void* data, std::size_t bytes) {
  return {const_cast<zip_uint8_t*>(static_cast<const zip_uint8_t*>(data)),
          bytes};
}

/// Adds an uncompressed member. The arguments must live until the archive is
/// closed.
void add_member(zip_t* archive, const std::string& name,
                const std::string& header, const tensor& value) {
  std::array parts{fragment(header.data(), header.size()),
                   fragment(value.raw(), value.bytes())};
  auto* source =
    zip_source_buffer_fragment(archive, parts.data(), parts.size(), 0);
  auto index = source ? zip_file_add(archive, (name + ".npy").c_str(), source,
                                     ZIP_FL_ENC_UTF_8)
                      : -1;
  if (index < 0) {
    zip_source_free(source);
    throw error(errc::invalid_argument, "cannot store array "
                                          + quoted_name(name) + ": "
                                          + zip_strerror(archive));
  }
  zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                           ZIP_CM_STORE, 0);
}

void check_writable(const std::string& name, const tensor& value) {
  if (!value || !value.is_plain())
    throw error(errc::invalid_argument, "cannot store array "
                                          + quoted_name(name)
                                          + ": not a plain tensor");
}

/// Makes an empty archive in memory. The source stays valid after the archive
/// is closed.
archive_ptr make_archive(const source_ptr& source) {
  zip_source_keep(source.get());
  archive_ptr archive(
    zip_open_from_source(source.get(), ZIP_TRUNCATE, nullptr));
  if (!archive) {
    zip_source_free(source.get());
    throw error(errc::io_failure, "cannot make a zip archive in memory");
  }
  return archive;
}

void close_archive(archive_ptr archive, const std::filesystem::path& path) {
  if (zip_close(archive.get()) != 0)
    throw error(errc::io_failure, path.string() + ": cannot make the archive: "
                                    + zip_strerror(archive.get()));
  (void)archive.release();
}

void copy_to_file(zip_source_t* source, const std::filesystem::path& path) {
  atomic_file file(path);
  zip_source_open(source);
  std::vector<char> chunk(1 << 18);
  zip_int64_t got = 0;
  while ((got = zip_source_read(source, chunk.data(), chunk.size())) > 0)
    file.write(chunk.data(), static_cast<std::size_t>(got));
  zip_source_close(source);
  if (got < 0)
    throw error(errc::io_failure, path.string()
                                    + ": the archive in memory "
                                      "cannot be read back");
  file.commit();
}

/// libzip writes no archive without members.
void write_empty_archive(const std::filesystem::path& path) {
  std::string end_record = "PK\5\6";
  end_record.resize(22, '\0');
  atomic_file file(path);
  file.write(end_record);
  file.commit();
}

} // namespace

named_tensors read_npz(const std::filesystem::path& path, arena& memory) {
  auto file_size = input_file(path).size();
  auto archive = open_archive(path);
  auto count = zip_get_num_entries(archive.get(), 0);
  named_tensors result;
  std::uint64_t compressed = 0;
  for (zip_uint64_t index = 0; index < static_cast<zip_uint64_t>(count);
       ++index) {
    auto info = stat_member(archive.get(), index, path.string());
    if (info.comp_size > file_size - compressed)
      bad(path.string(), "members overlap");
    compressed += info.comp_size;
    auto name = array_name(info.name, path.string());
    member_reader member(archive.get(), index,
                         path.string() + ": " + quoted_name(name));
    auto array = naming_file(
      member.name(), [&] { return read_array(member, info.size, memory); });
    if (!result.emplace(name, std::move(array)).second)
      bad(path.string(), "array " + quoted_name(name) + " occurs twice");
  }
  return result;
}

void require_npz_array(const std::string& name, dtype type) {
  const auto header = make_npy_header(type, shape{});
  const source_ptr source(zip_source_buffer_create(nullptr, 0, 0, nullptr));
  const auto archive = make_archive(source);
  add_member(archive.get(), name, header, tensor{});
}

void write_npz(const std::filesystem::path& path, const named_tensors& arrays) {
  if (arrays.empty())
    return write_empty_archive(path);
  std::deque<std::string> headers;
  source_ptr source(zip_source_buffer_create(nullptr, 0, 0, nullptr));
  auto archive = make_archive(source);
  for (const auto& [name, value] : arrays) {
    check_writable(name, value);
    headers.push_back(make_npy_header(value.type(), value.dims()));
    add_member(archive.get(), name, headers.back(), value);
  }
  close_archive(std::move(archive), path);
  copy_to_file(source.get(), path);
}

} // namespace troupe
