# OpenBLAS, the flavour with threads first: its serial flavour shares work
# buffers between calling threads without a lock, which gives wrong products
# when two workers call it at once. Kernels keep OpenBLAS at one thread each.
# Defines OpenBLAS::openblas.
find_path(OpenBLAS_INCLUDE_DIR cblas.h
  PATH_SUFFIXES openblas-pthread openblas-openmp openblas)
find_library(OpenBLAS_LIBRARY openblas
  PATH_SUFFIXES openblas-pthread openblas-openmp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS
  REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::openblas)
  add_library(OpenBLAS::openblas UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::openblas PROPERTIES
    IMPORTED_LOCATION ${OpenBLAS_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${OpenBLAS_INCLUDE_DIR})
endif()
