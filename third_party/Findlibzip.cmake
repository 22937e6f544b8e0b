# libzip as Debian packages it (libzip-dev). Debian's own CMake config fails
# unless the command line tools of three more packages are installed. Defines
# libzip::zip.
find_path(libzip_INCLUDE_DIR zip.h)
find_library(libzip_LIBRARY zip)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(libzip REQUIRED_VARS libzip_LIBRARY libzip_INCLUDE_DIR)
if(libzip_FOUND AND NOT TARGET libzip::zip)
  add_library(libzip::zip UNKNOWN IMPORTED)
  set_target_properties(libzip::zip PROPERTIES
    IMPORTED_LOCATION ${libzip_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${libzip_INCLUDE_DIR})
endif()
