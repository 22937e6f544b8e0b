# Installs Troupe with DESTDIR, moves the tree elsewhere and checks its contents.
#   cmake -DBUILD_DIR=... -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -P installed.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

# No library, header or other file of the package may contain the names of the
# build folders.
function(check_paths)
  get_filename_component(source ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
  execute_process(
    COMMAND grep -rlF --exclude-dir=bin -e ${source} -e ${BUILD_DIR} ${WORK_DIR}/moved
    OUTPUT_VARIABLE found RESULT_VARIABLE status)
  if(NOT status EQUAL 1) # none
    message(FATAL_ERROR "these name the build's folders:\n${found}")
  endif()
endfunction()

# The messages of Paddle's files have names that only Troupe uses, so that a
# program can link Paddle's own.
function(check_symbols)
  file(GLOB_RECURSE libraries ${WORK_DIR}/moved/libtroupe_*.a)
  execute_process(COMMAND nm -C --defined-only ${libraries}
    OUTPUT_VARIABLE symbols ERROR_QUIET RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT symbols MATCHES "troupe::paddle::proto::ProgramDesc")
    message(FATAL_ERROR "the symbols of the libraries cannot be read")
  endif()
  if(symbols MATCHES "paddle::framework::[^\n]*")
    message(FATAL_ERROR "a library defines a name of Paddle's: ${CMAKE_MATCH_0}")
  endif()
endfunction()

# All headers that an installed header includes must be installed too.
function(check_headers)
  set(include_dir ${WORK_DIR}/moved/include)
  file(GLOB_RECURSE headers ${include_dir}/troupe/*.hpp)
  if(NOT headers)
    message(FATAL_ERROR "no headers are installed")
  endif()
  foreach(header IN LISTS headers)
    file(STRINGS ${header} includes REGEX "^#include <troupe/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include <(.*)>.*" "\\1" wanted "${line}")
      if(NOT EXISTS ${include_dir}/${wanted})
        message(FATAL_ERROR "${header} includes ${wanted}, which is not installed")
      endif()
    endforeach()
  endforeach()
endfunction()

function(check_unknown_component)
  set_configure(configure ${WORK_DIR}/unknown ${WORK_DIR}/moved COMPONENTS graph orchestra)
  execute_process(COMMAND ${configure}
    RESULT_VARIABLE status ERROR_VARIABLE message OUTPUT_QUIET)
  string(REGEX REPLACE "[ \n]+" " " message "${message}")
  if(status EQUAL 0 OR NOT message MATCHES "no component orchestra")
    message(FATAL_ERROR "an unknown component is not refused: ${message}")
  endif()
endfunction()

# --version names the build, and the commit that TroupeCommit.cmake finds.
function(check_version)
  execute_process(COMMAND ${WORK_DIR}/moved/bin/troupe --version
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  foreach(part "\nbuilt with (GCC|Clang) [^\n]*; with" "dashboard" "gloo" "mpi" "cuda"
      "\nuses CAF [0-9]" "OpenSSL [0-9]" "oneDNN [0-9]" "OpenBLAS [0-9]")
    if(NOT text MATCHES "${part}")
      message(FATAL_ERROR "--version does not say '${part}':\n${text}")
    endif()
  endforeach()
  find_program(GIT git)
  set(file ${WORK_DIR}/commit.cpp)
  must(${CMAKE_COMMAND} -DOUT=${file} -DSOURCE_DIR=${SOURCE_DIR} -DGIT=${GIT}
    -P ${SOURCE_DIR}/cmake/TroupeCommit.cmake)
  file(STRINGS ${file} line REGEX "source_commit")
  if(NOT line MATCHES "\"([0-9a-f]*)(-dirty)?\"")
    message(FATAL_ERROR "no commit: ${line}")
  endif()
  # What is built may be of the commit before: both say one, or none.
  if(CMAKE_MATCH_1 AND NOT text MATCHES "^troupe [0-9.]+ \\(commit [0-9a-f]+")
    message(FATAL_ERROR "--version names no commit:\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
must(${CMAKE_COMMAND} -E env DESTDIR=${WORK_DIR}/stage
  ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix /opt/troupe)
file(RENAME ${WORK_DIR}/stage/opt/troupe ${WORK_DIR}/moved)
if(NOT FLAGS MATCHES "-fsanitize") # whose reports name the folders
  check_paths()
endif()
check_symbols()
check_headers()
check_unknown_component()
check_version()
