# Configures a project that has Troupe as a part, compiles a file with all public
# headers, and builds a program with one layer.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DCXX=... [-DCLANG=...] [-DLAUNCHER=...]
#     -P subproject.cmake
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)

set(folder ${WORK_DIR})
file(REMOVE_RECURSE ${folder})
must(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR}/subproject -B ${folder}
  -DTROUPE=${SOURCE_DIR} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCLANG=${CLANG})
must(${CMAKE_COMMAND} --build ${folder} --target all_headers)
must(${CMAKE_COMMAND} --build ${folder} --target uses_base)
must(${folder}/uses_base)
