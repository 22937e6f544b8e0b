// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/npy.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <array>
#include <charconv>
#include <cstring>
#include <vector>

namespace troupe {

namespace {

constexpr std::string_view magic{"\x93NUMPY", 6};

struct npy_type {
  std::string_view code;
  dtype type;
};

constexpr std::array<npy_type, 9> npy_types{{
  {"f2", dtype::float16},
  {"f4", dtype::float32},
  {"f8", dtype::float64},
  {"i1", dtype::int8},
  {"i2", dtype::int16},
  {"i4", dtype::int32},
  {"i8", dtype::int64},
  {"u1", dtype::uint8},
  {"b1", dtype::boolean},
}};

/// Reads the header's Python dictionary token by token.
class header_parser {
public:
  header_parser(std::string_view text, const std::string& name)
    : text_(text), name_(name) {}

  npy_header parse() {
    npy_header header;
    expect('{');
    while (!accept('}')) {
      parse_entry(header);
      accept(',');
    }
    if (seen_ != all_keys)
      fail("descr, fortran_order or shape is missing");
    return header;
  }

private:
  enum key : unsigned { descr_key = 1, order_key = 2, shape_key = 4 };
  static constexpr unsigned all_keys = descr_key | order_key | shape_key;

  [[noreturn]] void fail(const std::string& why) const {
    throw error(errc::bad_file, name_ + ": malformed .npy header: " + why);
  }

  void skip_blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n'))
      text_.remove_prefix(1);
  }

  bool accept(char c) {
    skip_blanks();
    if (text_.empty() || text_[0] != c)
      return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c))
      fail(std::string("expected '") + c + "'");
  }

  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.starts_with(word))
      return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::string_view parse_string() {
    char quote = accept('"') ? '"' : '\'';
    if (quote == '\'')
      expect('\'');
    auto end = text_.find(quote);
    if (end == text_.npos)
      fail("a string does not end");
    auto result = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return result;
  }

  void parse_entry(npy_header& header) {
    auto name = parse_string();
    expect(':');
    if (name == "descr") {
      header.type = parse_type();
      seen_ |= descr_key;
    } else if (name == "fortran_order") {
      header.fortran_order = parse_bool();
      seen_ |= order_key;
    } else if (name == "shape") {
      header.dims = parse_shape();
      seen_ |= shape_key;
    } else {
      fail("an unknown key");
    }
  }

  bool parse_bool() {
    if (accept_word("True"))
      return true;
    if (!accept_word("False"))
      fail("fortran_order is neither True nor False");
    return false;
  }

  dtype parse_type() {
    if (accept('['))
      throw error(errc::bad_file,
                  name_ + ": structured arrays are not supported");
    auto text = parse_string();
    if (text.find('O') != text.npos)
      throw error(errc::bad_file, name_ + ": object arrays are not supported");
    if (text.starts_with('>'))
      throw error(errc::bad_file,
                  name_ + ": big-endian dtype " + quoted_name(text)
                    + " is not supported; store it as little endian");
    for (const auto& [code, type] : npy_types)
      if (text.size() == 3 && text.substr(1) == code
          && (text[0] == '<' || (text[0] == '|' && size_of(type) == 1)))
        return type;
    throw error(errc::bad_file,
                name_ + ": dtype " + quoted_name(text) + " is not supported");
  }

  std::int64_t parse_extent() {
    std::int64_t extent = 0;
    auto [end, code] =
      std::from_chars(text_.data(), text_.data() + text_.size(), extent);
    if (code != std::errc{} || extent < 0)
      fail("a bad extent");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return extent;
  }

  shape parse_shape() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      dims.push_back(parse_extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (dims.size() > shape::max_rank)
      throw error(errc::bad_file, name_ + ": has " + std::to_string(dims.size())
                                    + " axes, at most 8 are supported");
    return shape(dims);
  }

  std::string_view text_;
  const std::string& name_;
  unsigned seen_ = 0;
};

/// The length of the dictionary, and of what precedes it.
struct preamble {
  std::size_t before = 0;
  std::size_t length = 0;
};

preamble parse_preamble(std::string_view bytes, const std::string& name) {
  if (bytes.size() < 12 || !bytes.starts_with(magic))
    throw error(errc::bad_file, name + ": not an .npy array");
  auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  auto version = byte(6);
  if (version < 1 || version > 3)
    throw error(errc::bad_file, name + ": .npy version "
                                  + std::to_string(version)
                                  + " is not supported");
  preamble result{10, byte(8) | byte(9) << 8};
  if (version > 1)
    result = {12, result.length | byte(10) << 16 | byte(11) << 24};
  if (result.length > bytes.size() - result.before)
    throw error(errc::bad_file, name + ": the .npy header of "
                                  + std::to_string(result.length)
                                  + " bytes is cut off or longer than "
                                  + std::to_string(max_npy_header));
  return result;
}

std::string_view code_of(dtype type) {
  for (const auto& entry : npy_types)
    if (entry.type == type)
      return entry.code;
  throw error(errc::invalid_argument,
              ".npy cannot hold " + std::string(to_string(type)));
}

/// Advances `index` in row-major order and returns the change of its offset
/// under `strides`, in elements.
std::int64_t advance(std::vector<std::int64_t>& index, const shape& dims,
                     const std::vector<std::int64_t>& strides) {
  std::int64_t change = 0;
  for (auto axis = dims.rank(); axis-- > 0;) {
    change += strides[axis];
    if (++index[axis] < dims[axis])
      return change;
    change -= strides[axis] * dims[axis];
    index[axis] = 0;
  }
  return change;
}

} // namespace

npy_header parse_npy_header(std::string_view bytes, const std::string& name) {
  auto [before, length] = parse_preamble(bytes, name);
  auto header = header_parser(bytes.substr(before, length), name).parse();
  header.data_offset = before + length;
  try {
    (void)header.dims.numel();
  } catch (const error&) {
    throw error(errc::bad_file,
                name + ": shape " + to_string(header.dims) + " is too large");
  }
  return header;
}

std::string make_npy_header(dtype type, const shape& dims) {
  std::string dictionary = "{'descr': '";
  dictionary += size_of(type) == 1 ? '|' : '<';
  dictionary += code_of(type);
  dictionary += "', 'fortran_order': False, 'shape': (";
  for (auto extent : dims)
    dictionary += std::to_string(extent) + ", ";
  dictionary += "), }";
  auto unpadded = magic.size() + 4 + dictionary.size() + 1;
  dictionary.append((64 - unpadded % 64) % 64, ' ');
  dictionary += '\n';
  std::string header(magic);
  header += {'\1', '\0', static_cast<char>(dictionary.size() & 0xff),
             static_cast<char>(dictionary.size() >> 8)};
  return header + dictionary;
}

tensor from_fortran_order(const tensor& source, arena& memory) {
  const auto& dims = source.dims();
  std::vector<std::int64_t> strides, index(dims.rank(), 0);
  for (std::int64_t stride = 1; auto extent : dims) {
    strides.push_back(stride);
    stride *= extent;
  }
  auto result = tensor::make(memory, dims, source.type());
  auto element = size_of(source.type());
  auto* to = result.raw();
  std::int64_t offset = 0;
  for (auto left = source.numel(); left > 0; --left, to += element) {
    std::memcpy(to, source.raw() + offset * static_cast<std::int64_t>(element),
                element);
    offset += advance(index, dims, strides);
  }
  return result;
}

} // namespace troupe
