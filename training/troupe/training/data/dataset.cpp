// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/dataset.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/kernels/io/csv.hpp>
#include <troupe/kernels/io/idx.hpp>
#include <troupe/kernels/io/reserved_memory.hpp>
#include <troupe/kernels/io/text.hpp>

#include <algorithm>
#include <string>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The two feeds of a program that learns from labelled samples.
struct labelled_feeds {
  const feed_info* features; ///< float32
  const feed_info* label;
};

[[noreturn]] void refuse(const fs::path& path, std::span<const feed_info> feeds,
                         const char* wanted) {
  std::string text =
    path.string() + " fits programs with " + wanted + "; this one is fed";
  for (const feed_info& feed : feeds)
    text += (&feed == &feeds.front() ? " " : ", ") + to_string(feed);
  throw error(errc::invalid_argument, text);
}

/// If both feeds are float, the one with one element per sample is the label.
labelled_feeds find_labelled_feeds(const fs::path& path,
                                   std::span<const feed_info> feeds) {
  constexpr const char* wanted = "one float feed and one label";
  if (feeds.size() != 2)
    refuse(path, feeds, wanted);
  const bool first_is_label =
    feeds[0].type != dtype::float32
    || (feeds[1].type == dtype::float32 && sample_elements(feeds[0]) == 1);
  const labelled_feeds found{&feeds[first_is_label ? 1 : 0],
                             &feeds[first_is_label ? 0 : 1]};
  if (found.features->type != dtype::float32
      || sample_elements(*found.label) != 1)
    refuse(path, feeds, wanted);
  return found;
}

/// The feed's shape for `samples` samples of `elements` elements each.
shape sample_shape(const feed_info& feed, std::int64_t samples,
                   std::int64_t elements, const std::string& file,
                   const std::string& has) {
  if (sample_elements(feed) != elements)
    throw error(errc::shape_mismatch,
                file + ": samples have " + has + ", feed " + to_string(feed)
                  + " wants " + std::to_string(sample_elements(feed))
                  + " elements",
                {.variable = feed.name});
  shape dims = feed.dims;
  dims[0] = samples;
  return dims;
}

tensor as_label(const feed_info& feed, const tensor& values,
                const std::string& file, arena& memory) {
  const std::int64_t samples = values.dims()[0];
  tensor label = cast(values, feed.type, memory)
                   .reshaped(sample_shape(feed, samples, 1, file, "one label"));
  check_range(feed, label, file);
  return label;
}

dataset load_idx(const fs::path& folder, std::span<const feed_info> feeds,
                 dataset_part part, arena& memory) {
  const std::string prefix =
    (folder / (part == dataset_part::train ? "train" : "t10k")).string();
  const std::string image_file = prefix + "-images-idx3-ubyte";
  const std::string label_file = prefix + "-labels-idx1-ubyte";
  const auto [features, label] = find_labelled_feeds(folder, feeds);
  const tensor images = read_idx(image_file, memory);
  const tensor labels = read_idx(label_file, memory);
  if (images.type() != dtype::uint8 || images.dims().rank() < 2)
    throw error(errc::bad_file, image_file + ": no pictures of bytes");
  const std::int64_t samples = images.dims()[0];
  if (labels.dims().rank() != 1 || labels.dims()[0] != samples)
    throw error(errc::bad_file, label_file + ": labels "
                                  + to_string(labels.dims()) + " for "
                                  + std::to_string(samples) + " images");
  if (samples == 0)
    throw error(errc::bad_file, image_file + ": no samples");
  tensor pixels = cast(images, dtype::float32, memory);
  for (float& value : pixels.values<float>())
    value /= 255;
  const auto dims = sample_shape(*features, samples, pixels.numel() / samples,
                                 image_file, to_string(images.dims()));
  dataset data;
  data.samples = samples;
  data.columns.emplace(features->name, pixels.reshaped(dims));
  data.columns.emplace(label->name,
                       as_label(*label, labels, label_file, memory));
  return data;
}

dataset load_csv(const fs::path& file, std::span<const feed_info> feeds,
                 arena& memory) {
  const auto [features, label] = find_labelled_feeds(file, feeds);
  const csv_table table = read_csv(file, {.label_type = label->type}, memory);
  const std::int64_t samples = table.features.dims()[0];
  const std::int64_t columns = table.features.dims()[1];
  const auto dims = sample_shape(*features, samples, columns, file.string(),
                                 std::to_string(columns) + " columns");
  dataset data;
  data.samples = samples;
  data.columns.emplace(features->name, table.features.reshaped(dims));
  data.columns.emplace(label->name,
                       as_label(*label, table.labels, file.string(), memory));
  return data;
}

/// The feed that an embedding reads is the text, the other holds the targets.
/// Both have one element per token; targets often have one more axis.
labelled_feeds find_token_feeds(const fs::path& path,
                                std::span<const feed_info> feeds) {
  constexpr const char* wanted = "two feeds of as many whole numbers";
  if (feeds.size() != 2 || feeds[0].type != dtype::int64
      || feeds[1].type != dtype::int64
      || sample_elements(feeds[0]) != sample_elements(feeds[1]))
    refuse(path, feeds, wanted);
  const bool swapped = feeds[0].dims.rank() > feeds[1].dims.rank()
                       || (feeds[0].dims.rank() == feeds[1].dims.rank()
                           && feeds[1].name == "tokens");
  return {&feeds[swapped ? 1 : 0], &feeds[swapped ? 0 : 1]};
}

/// Window i of `count` holds tokens [i * length + shift, ... + length).
tensor windows(const tensor& text, const feed_info& feed, std::int64_t count,
               std::int64_t shift, const std::string& file, arena& memory) {
  shape dims = feed.dims;
  dims[0] = count;
  tensor out = tensor::make(memory, dims, dtype::int64);
  std::copy_n(text.data<std::int64_t>() + shift, out.numel(),
              out.data<std::int64_t>());
  check_range(feed, out, file);
  return out;
}

dataset load_text(const fs::path& file, std::span<const feed_info> feeds,
                  arena& memory) {
  const auto [tokens, targets] = find_token_feeds(file, feeds);
  const tensor text = read_text(file, memory);
  const std::int64_t length = sample_elements(*tokens);
  dataset data;
  data.samples = (text.numel() - 1) / length;
  if (data.samples < 1)
    throw error(errc::bad_file,
                file.string() + ": " + std::to_string(text.numel())
                  + " bytes, a sample needs " + std::to_string(length + 1));
  data.columns.emplace(tokens->name, windows(text, *tokens, data.samples, 0,
                                             file.string(), memory));
  data.columns.emplace(targets->name, windows(text, *targets, data.samples, 1,
                                              file.string(), memory));
  return data;
}

} // namespace

bool has_held_out(const fs::path& path) {
  // A folder with only one of the two files is refused when it is read.
  const auto has = [&](const char* name) {
    return input_type(path / name) != fs::file_type::not_found;
  };
  return input_type(path) == fs::file_type::directory
         && (has("t10k-images-idx3-ubyte") || has("t10k-labels-idx1-ubyte"));
}

dataset load_dataset(const fs::path& path, std::span<const feed_info> feeds,
                     dataset_part part, arena& memory) {
  const auto type = input_type(path);
  if (type == fs::file_type::not_found)
    throw error(errc::not_found, path.string() + ": no such file or folder");
  return naming_file(path.string(), [&] {
    if (type == fs::file_type::directory)
      return load_idx(path, feeds, part, memory);
    if (path.extension() == ".csv")
      return load_csv(path, feeds, memory);
    if (path.extension() == ".txt")
      return load_text(path, feeds, memory);
    throw error(errc::invalid_argument,
                path.string()
                  + ": data is a folder of IDX files, .csv or .txt");
  });
}

} // namespace troupe
