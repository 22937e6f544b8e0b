# Finds NVIDIA's toolkit: nvcc, the runtime and cuBLAS, in the version that the
# module for CUDA devices is written for.
include(CheckLanguage)
find_program(TROUPE_NVCC nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(TROUPE_NVCC AND NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${TROUPE_NVCC})
endif()
set(CMAKE_CUDA_ARCHITECTURES ${TROUPE_CUDA_ARCHITECTURES})
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "TROUPE_CUDA needs NVIDIA's toolkit, and there is no nvcc in "
    "PATH, $CUDA_PATH/bin or /usr/local/cuda/bin")
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
if(NOT TARGET CUDA::cublasLt)
  message(FATAL_ERROR "TROUPE_CUDA needs cuBLASLt, which is not beside "
    "${CUDAToolkit_NVCC_EXECUTABLE}")
endif()
# Only NCCL's header is needed: the library is opened when devices merge values.
find_path(TROUPE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
if(TROUPE_NCCL_INCLUDE)
  set(with_nccl "with NCCL")
else()
  set(with_nccl "without NCCL, whose nccl.h is missing")
endif()
message(STATUS "CUDA devices: toolkit ${CUDAToolkit_VERSION}, for "
  "${TROUPE_CUDA_ARCHITECTURES}, ${with_nccl}")
