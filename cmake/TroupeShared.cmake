# libtroupe.so: all layers in one shared library, which shows only what the public
# headers declare (troupe.map, written by tools/public-symbols). It consists of the
# object files of the static libraries: the names that are not public become local
# when it is linked, so that calls inside it cost what they cost in a program.
set(layers base trace kernels graph comm actors training dashboard)
set(objects "")
set(include_folders "")
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:troupe_${layer}>)
  list(APPEND include_folders $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${layer}>)
endforeach()

add_library(troupe_shared SHARED ${objects})
add_library(troupe::shared ALIAS troupe_shared)
set_target_properties(troupe_shared PROPERTIES
  OUTPUT_NAME troupe
  EXPORT_NAME troupe
  VERSION ${PROJECT_VERSION}
  SOVERSION ${TROUPE_ABI}
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/troupe.map)
target_include_directories(troupe_shared INTERFACE
  ${include_folders} $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(troupe_shared INTERFACE cxx_std_20)
# The layers add the libraries that they need; their own archives give nothing
# more, because all of their object files are there.
target_link_libraries(troupe_shared
  INTERFACE CAF::io Threads::Threads
  PRIVATE troupe_training troupe_dashboard)
target_link_options(troupe_shared PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/troupe.map
  LINKER:--as-needed)
if(NOT TROUPE_SANITIZE) # whose functions the program brings along
  target_link_options(troupe_shared PRIVATE LINKER:--no-undefined)
endif()
