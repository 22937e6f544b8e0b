// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/stacks/code_places.hpp>

#include <troupe/base/files/descriptor.hpp>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {

namespace {

/// Reads parts of a file. A mapping of it would end the process if somebody
/// cuts the file.
class file_parts {
public:
  explicit file_parts(const std::string& path)
    : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status = {};
    if (file_ && ::fstat(file_.get(), &status) == 0)
      size_ = static_cast<std::uint64_t>(status.st_size);
  }

  /// Empty if the file cannot be read, or ends before.
  std::string part(std::uint64_t at, std::uint64_t bytes) const {
    if (at > size_ || bytes > size_ - at)
      return {};
    std::string made(bytes, '\0');
    const auto got =
      ::pread(file_.get(), made.data(), bytes, static_cast<off_t>(at));
    return got == static_cast<ssize_t>(bytes) ? made : std::string{};
  }

private:
  descriptor file_;
  std::uint64_t size_ = 0;
};

/// Structures in a file need not be aligned.
template <class T>
std::optional<T> read_as(std::string_view bytes) {
  if (bytes.size() < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
    abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free};
  return status == 0 && text ? text.get() : name;
}

std::string target_of(const char* link) {
  std::array<char, 4096> path{};
  const auto length = ::readlink(link, path.data(), path.size() - 1);
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length))
                    : std::string{};
}

std::string without_folder(const std::string& path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

std::string hexadecimal(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(number));
  return text;
}

constexpr const char* this_program = "/proc/self/exe";

} // namespace

/// The functions of a program or library.
class code_places::symbol_file {
public:
  explicit symbol_file(const std::string& path) {
    const file_parts file{path};
    const auto head = read_as<Elf64_Ehdr>(file.part(0, sizeof(Elf64_Ehdr)));
    constexpr auto order =
      std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0
        || head->e_ident[EI_CLASS] != ELFCLASS64
        || head->e_ident[EI_DATA] != order
        || head->e_shentsize != sizeof(Elf64_Shdr))
      return;
    const auto sections = file.part(head->e_shoff, std::uint64_t{head->e_shnum}
                                                     * sizeof(Elf64_Shdr));
    if (!use_table(file, sections, SHT_SYMTAB)) // has all, unless stripped
      use_table(file, sections, SHT_DYNSYM);
  }

  struct function {
    const char* name;
    std::uint64_t begin;
  };
  /// The function that has the address; of several, the one that begins last.
  std::optional<function> function_at(std::uint64_t address) const {
    std::optional<function> found;
    const std::string_view all{symbols_};
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= all.size();
         at += sizeof(Elf64_Sym)) {
      const auto s = *read_as<Elf64_Sym>(all.substr(at));
      const auto type = ELF64_ST_TYPE(s.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s.st_shndx == SHN_UNDEF
          || s.st_value > address || address - s.st_value >= s.st_size
          || (found && s.st_value <= found->begin)
          || s.st_name >= names_.size())
        continue;
      found = {names_.c_str() + s.st_name, s.st_value};
    }
    return found;
  }

private:
  static std::optional<Elf64_Shdr> section(std::string_view sections,
                                           std::uint64_t number) {
    const auto at = number * sizeof(Elf64_Shdr);
    return at < sections.size() ? read_as<Elf64_Shdr>(sections.substr(at))
                                : std::nullopt;
  }

  bool use_table(const file_parts& file, std::string_view sections,
                 std::uint32_t type) {
    for (std::uint64_t i = 0; const auto table = section(sections, i); ++i) {
      const auto names = section(sections, table->sh_link);
      if (table->sh_type != type || !names)
        continue;
      symbols_ = file.part(table->sh_offset, table->sh_size);
      names_ = file.part(names->sh_offset, names->sh_size);
      return !symbols_.empty() && !names_.empty();
    }
    return false;
  }

  std::string symbols_, names_;
};

code_places::code_places() = default;
code_places::~code_places() = default;

code_place code_places::at(std::uintptr_t address) {
  code_place place;
  place.module_offset = address;
  Dl_info found{};
  void* extra = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(address), &found, &extra,
                RTLD_DL_LINKMAP)
        == 0
      || !extra)
    return place;
  const auto& map = *static_cast<const link_map*>(extra);
  const bool is_program = !map.l_name || *map.l_name == '\0';
  const std::string path = is_program ? this_program : map.l_name;
  place.module = without_folder(is_program ? target_of(this_program) : path);
  place.module_offset = address - map.l_addr;
  auto& file = files_[path];
  if (!file)
    file = std::make_unique<symbol_file>(path);
  if (const auto f = file->function_at(place.module_offset)) {
    place.symbol = demangled(f->name);
    place.symbol_offset = place.module_offset - f->begin;
  }
  return place;
}

std::string to_string(const code_place& place) {
  const auto offset = hexadecimal(place.module_offset);
  const auto in_module =
    place.module.empty() ? offset : place.module + "+" + offset;
  if (!place.symbol.empty())
    return place.symbol + "+" + hexadecimal(place.symbol_offset) + " ("
           + in_module + ")";
  return place.module.empty() ? offset + ", generated code" : in_module;
}

} // namespace troupe
