// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/data/batch_source.hpp>

#include <filesystem>
#include <span>

namespace troupe {

/// Part of a folder of samples.
enum class dataset_part { train, held_out };

/// True if `path` is a folder with held-out samples (`t10k-*`).
bool has_held_out(const std::filesystem::path& path);

/// Reads samples and arranges them as the feeds of a program.
///
/// - A folder in MNIST's IDX format: the float feed gets the pixels, scaled to
///   [0, 1], the feed of whole numbers gets the labels.
/// - A `.csv` file: the last column is the label, the others are the elements
///   of the float feed.
/// - A `.txt` file: bytes are tokens. The program has two feeds of T whole
///   numbers per sample: windows of T tokens, and the same windows shifted by
///   one token.
///
/// Throws error(not_found | bad_file | shape_mismatch | out_of_range |
/// invalid_argument) naming the file and what the program needs.
dataset load_dataset(const std::filesystem::path& path,
                     std::span<const feed_info> feeds, dataset_part part,
                     arena& memory);

} // namespace troupe
