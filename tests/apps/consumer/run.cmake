# Installs Troupe into a fresh tree, builds the project in this folder against
# it and runs the result.
#   cmake -DBUILD_DIR=... -DWORK_DIR=... -DCXX=... [-DLAUNCHER=...] -P run.cmake
function(must)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
must(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
must(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_DIR}/build
  -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DCMAKE_CXX_FLAGS=${FLAGS})
must(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
must(${WORK_DIR}/build/consumer)
