# TROUPE_UNITY: the files of TARGET are compiled several at a time, which reads
# their headers once. Two files of one library then must not give the same name
# to things of their own.
function(troupe_unity target)
  if(TROUPE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  endif()
endfunction()

# Call it after troupe_unity. With TROUPE_UNITY all files of a folder are compiled
# together, so only two files of one folder must not use the same name in their
# anonymous namespaces.
function(troupe_unity_by_folder target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${name})
  endforeach()
endfunction()

# One function for all layers: a static library `troupe_<name>`, whose include root
# is the layer's own folder. A layer that does not link another cannot even find
# its headers.
#
# HEADERS are those for applications: they are installed, documented and kept
# stable. All others may change at any time.
#
#   troupe_library(graph HEADERS troupe/graph/a.hpp SOURCES a.cpp b.cpp
#     LINK troupe_kernels [PRIVATE x])
function(troupe_library name)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(troupe_${name} STATIC ${arg_SOURCES})
  set_target_properties(troupe_${name} PROPERTIES
    EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON TROUPE_HEADERS "${arg_HEADERS}")
  target_compile_features(troupe_${name} PUBLIC cxx_std_20)
  target_include_directories(troupe_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Assertions and call sites name files from the project's root: what is
  # installed says nothing of the machine that built it.
  target_compile_options(troupe_${name} PRIVATE
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
    -ffile-prefix-map=${PROJECT_BINARY_DIR}=.)
  target_link_libraries(troupe_${name} PUBLIC ${arg_LINK} PRIVATE ${arg_PRIVATE}
    $<BUILD_INTERFACE:troupe_warnings>)
  troupe_unity(troupe_${name})
  if(TROUPE_INSTALL)
    install(TARGETS troupe_${name} EXPORT troupe
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
    foreach(header IN LISTS arg_HEADERS)
      get_filename_component(folder ${header} DIRECTORY)
      install(FILES ${header}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder} COMPONENT dev)
    endforeach()
  endif()
endfunction()

# A module, `troupe_<name>.so` (base/module.hpp): a shared library that a program
# loads when it needs it. It shares types and interfaces with the program, and has
# copies of the few functions of LINK that it uses: others are left out, and none
# of them is shown. It does not use libtroupe.so, because a program that is linked
# statically would then have all of Troupe twice.
#   troupe_module(gloo SOURCES a.cpp LINK troupe_comm gloo)
function(troupe_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(troupe_${name} MODULE ${arg_SOURCES})
  set_target_properties(troupe_${name} PROPERTIES PREFIX "")
  if(CMAKE_RUNTIME_OUTPUT_DIRECTORY) # where programs find modules
    set_target_properties(troupe_${name} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  endif()
  target_link_libraries(troupe_${name} PRIVATE ${arg_LINK} troupe_warnings)
  target_link_options(troupe_${name} PRIVATE
    LINKER:--as-needed LINKER:--gc-sections LINKER:--exclude-libs,ALL)
  if(TROUPE_INSTALL)
    install(TARGETS troupe_${name}
      DESTINATION ${CMAKE_INSTALL_LIBDIR}/troupe COMPONENT engines)
  endif()
endfunction()

# Registers the cases of each file `*_test.cpp` of SOURCES as one test of ctest.
# The test fails if the file has no case. Large files start first, so that none
# runs alone at the end: before the first run, CTest does not know how long they
# take.
function(troupe_test_per_file name)
  cmake_parse_arguments(arg "" "" "SOURCES;PROPERTIES" ${ARGN})
  list(FILTER arg_SOURCES INCLUDE REGEX "_test\\.cpp$")
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(source IN LISTS arg_SOURCES)
    add_test(NAME ${name}/${source}
      COMMAND ${name}_test "--source-file=*/${folder}/${source}")
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} bytes)
    set_tests_properties(${name}/${source} PROPERTIES
      COST ${bytes} ${arg_PROPERTIES})
  endforeach()
endfunction()

# A doctest executable `<name>_test`. Each test case is one test of ctest, or
# each file with TROUPE_TESTS_PER=file. TIMEOUT is a case's, in seconds; a file
# has 600.
#   troupe_test(kernels SOURCES a_test.cpp LINK troupe::kernels [LABELS unit]
#     [TIMEOUT 120])
function(troupe_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${arg_LINK} troupe_test_main troupe_warnings)
  target_precompile_headers(${name}_test REUSE_FROM troupe_test_main)
  troupe_unity(${name}_test)
  target_compile_definitions(${name}_test PRIVATE
    TROUPE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    TROUPE_DATA="${PROJECT_SOURCE_DIR}/data")
  set(properties LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77) # of skip_case
  if(TROUPE_TESTS_PER STREQUAL "file")
    troupe_test_per_file(${name} SOURCES ${arg_SOURCES}
      PROPERTIES ${properties} TIMEOUT 600)
  else()
    doctest_discover_tests(${name}_test TEST_PREFIX "${name}/"
      PROPERTIES ${properties} TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()
