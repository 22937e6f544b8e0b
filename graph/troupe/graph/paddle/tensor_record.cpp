// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/paddle/tensor_record.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/dtype_number.hpp>

#include <framework.pb.h>

#include <algorithm>
#include <bit>
#include <type_traits>

namespace troupe::graph {

namespace {

static_assert(std::endian::native == std::endian::little,
              "records are little endian and are copied as they are");

using tensor_desc = troupe::paddle::proto::VarType::TensorDesc;

/// Reads the parts of one variable's record.
class record_reader {
public:
  record_reader(input_file& file, const std::string& name)
    : file_(file), what_("variable " + quoted_name(name)) {}

  [[noreturn]] void bad(const std::string& why) const {
    throw error(errc::bad_file,
                file_.path().string() + ": " + what_ + ": " + why);
  }

  template <class T>
  T number() {
    static_assert(std::is_integral_v<T>);
    T value = 0;
    file_.read(&value, sizeof value, what_.c_str());
    return value;
  }

  template <class T>
  std::vector<T> numbers(std::uint64_t count) {
    if (count > file_.remaining() / sizeof(T))
      bad("claims " + std::to_string(count) + " numbers, only "
          + std::to_string(file_.remaining()) + " bytes remain");
    std::vector<T> values(count);
    file_.read(values.data(), count * sizeof(T), what_.c_str());
    return values;
  }

  void version() {
    if (auto found = number<std::uint32_t>(); found != 0)
      bad("record version " + std::to_string(found)
          + " is not supported (is this a parameter file?)");
  }

  lod levels() {
    auto count = number<std::uint64_t>();
    if (count > file_.remaining() / sizeof(std::uint64_t))
      bad("claims " + std::to_string(count) + " levels of detail");
    lod result;
    for (; count > 0; --count) {
      auto bytes = number<std::uint64_t>();
      if (bytes % sizeof(std::uint64_t) != 0)
        bad("a level of detail has " + std::to_string(bytes) + " bytes");
      result.push_back(numbers<std::uint64_t>(bytes / sizeof(std::uint64_t)));
    }
    return result;
  }

  tensor plain_tensor(arena& memory) {
    version();
    auto desc = description();
    auto type = find_dtype(desc.data_type());
    if (!type || !desc.has_data_type())
      bad("data type number " + std::to_string(desc.data_type())
          + " is not supported");
    auto dims = dims_of(desc);
    file_.require(bytes_of(dims, *type), what_.c_str());
    auto result = tensor::make(memory, dims, *type);
    file_.read(result.raw(), result.bytes(), what_.c_str());
    normalise_booleans(result);
    return result;
  }

private:
  tensor_desc description() {
    auto length = number<std::int32_t>();
    if (length < 0)
      bad("its description has " + std::to_string(length) + " bytes");
    auto bytes =
      file_.read_string(static_cast<std::uint64_t>(length), what_.c_str());
    tensor_desc desc;
    if (!desc.ParsePartialFromString(bytes))
      bad("its description is not a TensorDesc");
    return desc;
  }

  shape dims_of(const tensor_desc& desc) {
    const auto& dims = desc.dims();
    if (dims.size() > static_cast<int>(shape::max_rank))
      bad("has " + std::to_string(dims.size())
          + " axes, at most 8 are supported");
    if (std::any_of(dims.begin(), dims.end(), [](auto d) { return d < 0; }))
      bad("has a negative extent");
    return shape(std::vector<std::int64_t>(dims.begin(), dims.end()));
  }

  std::uint64_t bytes_of(const shape& dims, dtype type) {
    std::uint64_t bytes = size_of(type);
    for (auto extent : dims)
      if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent),
                                 &bytes))
        bad("shape " + to_string(dims) + " is too large");
    return bytes;
  }

  /// A C++ bool must be stored as 0 or 1.
  static void normalise_booleans(tensor& value) {
    if (value.type() == dtype::boolean)
      for (auto* at = value.raw(); at != value.raw() + value.bytes(); ++at)
        *at = std::byte{*at != std::byte{0}};
  }

  input_file& file_;
  std::string what_;
};

template <class T>
void put(std::string& to, T number) {
  static_assert(std::is_integral_v<T>);
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_levels(std::string& to, const shared_lod& shared) {
  const auto levels = shared ? *shared : lod{};
  put<std::uint64_t>(to, levels.size());
  for (const auto& level : levels) {
    put<std::uint64_t>(to, level.size() * sizeof(std::uint64_t));
    for (auto offset : level)
      put(to, offset);
  }
}

void put_description(std::string& to, const tensor& value) {
  tensor_desc desc;
  desc.set_data_type(dtype_number(value.type()));
  for (auto extent : value.dims())
    desc.add_dims(extent);
  auto bytes = desc.SerializePartialAsString();
  put<std::uint32_t>(to, 0);
  put(to, static_cast<std::int32_t>(bytes.size()));
  to += bytes;
}

void check_plain(const tensor& value, const std::string& name) {
  if (!value || !value.is_plain())
    throw error(errc::invalid_argument,
                "cannot store variable " + quoted_name(name)
                  + ": not a plain tensor",
                {.variable = name});
}

} // namespace

tensor read_tensor_record(input_file& file, const std::string& name,
                          arena& memory) {
  record_reader reader(file, name);
  reader.version();
  auto levels = reader.levels();
  auto value = reader.plain_tensor(memory);
  try {
    const auto rows = value.dims().rank() == 0 ? 1 : value.dims()[0];
    value.set_levels(make_lod(std::move(levels), rows));
  } catch (const error& e) {
    reader.bad(e.what());
  }
  return value;
}

void write_tensor_record(atomic_file& file, const tensor& value,
                         const std::string& name) {
  check_plain(value, name);
  std::string head;
  put<std::uint32_t>(head, 0);
  put_levels(head, value.levels());
  put_description(head, value);
  file.write(head);
  file.write(value.raw(), value.bytes());
}

selected_rows read_rows_record(input_file& file, const std::string& name,
                               arena& memory) {
  record_reader reader(file, name);
  reader.version();
  selected_rows result;
  result.rows = reader.numbers<std::int64_t>(reader.number<std::uint64_t>());
  result.height = reader.number<std::int64_t>();
  for (auto row : result.rows)
    if (row < 0 || row >= result.height)
      reader.bad("row " + std::to_string(row) + " is outside of height "
                 + std::to_string(result.height));
  result.values = reader.plain_tensor(memory);
  const auto& dims = result.values.dims();
  if (dims.rank() == 0
      || dims[0] != static_cast<std::int64_t>(result.rows.size()))
    reader.bad("has values " + to_string(dims) + " for "
               + std::to_string(result.rows.size()) + " rows");
  return result;
}

void write_rows_record(atomic_file& file, const selected_rows& value,
                       const std::string& name) {
  check_plain(value.values, name);
  std::string head;
  put<std::uint32_t>(head, 0);
  put<std::uint64_t>(head, value.rows.size());
  for (auto row : value.rows)
    put(head, row);
  put(head, value.height);
  put_description(head, value.values);
  file.write(head);
  file.write(value.values.raw(), value.values.bytes());
}

} // namespace troupe::graph
