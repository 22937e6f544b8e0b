// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/io/text.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>

#include <algorithm>
#include <string>

namespace troupe {

tensor read_text(const std::filesystem::path& path, arena& memory) {
  input_file file(path);
  reserved_memory reserved(path);
  reserved.hold(file.size());
  const std::string text = file.read_string(file.size());
  if (text.empty())
    throw error(errc::bad_file, path.string() + ": is empty");
  auto result = naming_file(path.string(), [&] {
    return tensor::make(memory, shape{static_cast<std::int64_t>(text.size())},
                        dtype::int64);
  });
  std::transform(text.begin(), text.end(), result.data<std::int64_t>(),
                 [](char c) { return static_cast<unsigned char>(c); });
  return result;
}

} // namespace troupe
