# What the tests of the package share: WORK_DIR is a test's own folder, PREFIX the
# tree that installed.cmake has made.
function(must)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Sets `variable` to the command that configures the consumer in `folder` for the
# package in `prefix`. The remaining arguments are what it asks find_package for.
function(set_configure variable folder prefix)
  string(JOIN " " asked ${ARGN})
  set(${variable} ${CMAKE_COMMAND} -G Ninja
    -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${folder}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
    -DCMAKE_CXX_FLAGS=${FLAGS} "-DASKED=${asked}" PARENT_SCOPE)
endfunction()

# Builds and runs the consumer.
function(build_consumer folder prefix)
  file(REMOVE_RECURSE ${folder})
  set_configure(configure ${folder} ${prefix} ${ARGN})
  must(${configure})
  must(${CMAKE_COMMAND} --build ${folder})
  must(${folder}/consumer)
endfunction()
