// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/tensor.hpp>

#include <filesystem>

namespace troupe {

/// Reads a file in MNIST's IDX format into host memory of `memory`: element
/// types uint8, int8, int16, int32, float32 and float64, rank 1 to 8.
///
/// Throws error(not_found) if there is no such file and error(bad_file), with
/// byte counts, for one whose size is not what its header says.
/// Source: http://yann.lecun.com/exdb/mnist, "The IDX file format".
tensor read_idx(const std::filesystem::path& path, arena& memory);

/// Pictures and what they show.
struct labelled_images {
  tensor images; ///< uint8 [count, height, width]
  tensor labels; ///< uint8 [count]
};

/// The two parts of a data set like MNIST.
struct image_dataset {
  labelled_images train;
  labelled_images test; ///< held out
};

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same
/// with `t10k` from `folder`. Throws like read_idx, and error(bad_file) if the
/// images of a part are not as many as its labels, or not bytes.
image_dataset read_idx_folder(const std::filesystem::path& folder,
                              arena& memory);

} // namespace troupe
