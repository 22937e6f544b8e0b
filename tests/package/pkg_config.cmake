# Builds a consumer with pkg-config alone.
#   cmake -DWORK_DIR=... -DCXX=... -DPREFIX=... -P pkg_config.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message("skipped: needs pkg-config (apt-get install pkgconf)")
  return()
endif()
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/lib/pkgconfig)
execute_process(COMMAND ${PKG_CONFIG} --cflags --libs "troupe >= 0.2"
  OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
separate_arguments(flags)
file(MAKE_DIRECTORY ${WORK_DIR})
must(${CXX} ${CMAKE_CURRENT_LIST_DIR}/consumer/main.cpp -o ${WORK_DIR}/consumer
  ${flags} -Wl,-rpath,${PREFIX}/lib)
must(${WORK_DIR}/consumer)
