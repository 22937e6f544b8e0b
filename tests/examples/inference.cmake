# Trains a network, and asks it from the threads of the example.
set(folder ${CMAKE_CURRENT_BINARY_DIR}/inference_program)
file(REMOVE_RECURSE ${folder})
execute_process(
  COMMAND ${TROUPE} train digits --data data/digits --epochs 4 --save ${folder}
  WORKING_DIRECTORY ${SOURCE} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${EXAMPLE} ${folder}
  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
# Most are right after four epochs; guesses would give 80.
if(NOT out MATCHES "^(800|[67][0-9][0-9]) of 800 right, in [0-9]+ steps")
  message(FATAL_ERROR "the example wrote: ${out}")
endif()
file(REMOVE_RECURSE ${folder})
