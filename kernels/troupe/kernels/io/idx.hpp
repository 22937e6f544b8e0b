// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>

namespace troupe {

/// Reads a file in MNIST's IDX format into host memory from `memory`. Element
/// types: uint8, int8, int16, int32, float32 and float64. Ranks: 1 to 8.
///
/// Throws error(not_found) if there is no such file. Throws error(bad_file),
/// with byte counts, if the file's size does not match its header. Source:
/// http://yann.lecun.com/exdb/mnist, "The IDX file format".
tensor read_idx(const std::filesystem::path& path, arena& memory);

/// Images and their labels.
struct labelled_images {
  tensor images; ///< uint8 [count, height, width]
  tensor labels; ///< uint8 [count]
};

/// A data set like MNIST: a training part and a test part.
struct image_dataset {
  labelled_images train;
  labelled_images test; ///< held out
};

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same
/// names with `t10k` from `folder`. Throws like `read_idx`. Also throws
/// error(bad_file) if the numbers of images and labels differ, or if the
/// elements are not bytes.
image_dataset read_idx_folder(const std::filesystem::path& folder,
                              arena& memory);

} // namespace troupe
