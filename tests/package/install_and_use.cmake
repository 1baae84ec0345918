# Installs the build tree into a fresh prefix, builds the consumer against it, and runs both.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nexited with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
if(NOT output STREQUAL "gamma 8: 3.09208x\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
run(${WORK_DIR}/prefix/bin/specdec --version)

run(${CXX_COMPILER} -std=c++20 -Wall -Wextra -Werror -pthread -I ${WORK_DIR}/prefix/include/specdec
  ${CONSUMER_DIR}/speculate_alone.cpp -o ${WORK_DIR}/speculate_alone)
run(${WORK_DIR}/speculate_alone)

# The documentation shows this very program.
file(READ ${CONSUMER_DIR}/consumer.cpp program)
file(READ ${CONSUMER_DIR}/../../../docs/library.md page)
string(FIND "${page}" "${program}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "docs/library.md does not show tests/package/consumer/consumer.cpp as it is")
endif()
