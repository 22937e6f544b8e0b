# Debian's libcaf-dev 0.17.6 carries no CMake config; newer CAF does, and is
# taken from there. TROUPE_CAF_ROOT names the folder in which one is installed that
# is to be used instead of Debian's. Defines CAF::core and CAF::io.
set(TROUPE_CAF_ROOT "" CACHE PATH "Where a CAF of one's own is installed")
if(TROUPE_CAF_ROOT)
  find_package(CAF CONFIG REQUIRED COMPONENTS ${CAF_FIND_COMPONENTS}
    PATHS ${TROUPE_CAF_ROOT} NO_DEFAULT_PATH)
else()
  find_package(CAF CONFIG QUIET)
endif()
if(TARGET CAF::core)
  return()
endif()

find_path(CAF_INCLUDE_DIR caf/config.hpp)
set(caf_required CAF_INCLUDE_DIR)
foreach(component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${component}_LIBRARY caf_${component})
  list(APPEND caf_required CAF_${component}_LIBRARY)
endforeach()
if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp caf_version_line
    REGEX "#define CAF_VERSION ")
  string(REGEX MATCH "[0-9]+" caf_version_number "${caf_version_line}")
  if(caf_version_number)
    math(EXPR caf_minor "(${caf_version_number} / 100) % 100")
    math(EXPR caf_patch "${caf_version_number} % 100")
    set(CAF_VERSION "0.${caf_minor}.${caf_patch}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS ${caf_required} VERSION_VAR CAF_VERSION)

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(component IN LISTS CAF_FIND_COMPONENTS)
    if(NOT TARGET CAF::${component})
      add_library(CAF::${component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${component} PROPERTIES
        IMPORTED_LOCATION ${CAF_${component}_LIBRARY}
        INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
      target_link_libraries(CAF::${component} INTERFACE Threads::Threads)
    endif()
  endforeach()
  if(TARGET CAF::io)
    target_link_libraries(CAF::io INTERFACE CAF::core)
  endif()
endif()
