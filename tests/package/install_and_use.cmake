# Installs the build tree into a fresh prefix, builds the consumer against it, and runs both.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nexited with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(source ${CONSUMER_DIR}/../../..)
file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
  -DCMAKE_CXX_COMPILER=${CXX_COMPILER} -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

# Each program prints what it should, and the documentation shows two as they are.
file(READ ${source}/docs/guide/build_on_it.md page)
function(check program expected)
  run(${WORK_DIR}/build/${program} ${ARGN})
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${program} printed: ${output}")
  endif()
endfunction()
file(WRITE ${WORK_DIR}/timings.csv
  "batch,tokens,context,seconds\n1,1,500,0.0100\n1,5,500,0.0108\n4,1,500,0.0104\n4,5,500,0.0125\n")
function(require_shown program)
  file(READ ${CONSUMER_DIR}/${program}.cpp code)
  string(FIND "${page}" "${code}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "docs/guide/build_on_it.md does not show tests/package/consumer/${program}.cpp as it is")
  endif()
endfunction()
require_shown(best_gamma)
require_shown(server_plan)
check(best_gamma "^gamma 8: 3.09208x\n$")
check(hardware_plan "^batch 1: gamma [1-9][0-9]*, [12]\\.[0-9]+x\nbatch 8: .*\nbatch 64: .*x\n$")
check(recording_plan "^alpha 0\\.[0-9]+, gamma [0-9]+: [12]\\.[0-9]+x, 95% [12]\\.[0-9]+ to [12]\\.[0-9]+\n$"
  ${WORK_DIR}/prefix/share/specdec/models/recording.safetensors)
check(recording_analysis "^alpha 0\\.[0-9]+ at [1-9][0-9]* positions, gamma [1-9][0-9]*, worth it up to c 0\\.[0-9]+\n$"
  ${WORK_DIR}/prefix/share/specdec/models/recording.safetensors)
check(server_plan "batch 4: gamma [0-9]+, [12]\\.[0-9]+x\nvllm serve "
  ${source}/traces/samples/serving/vllm_after.prom ${WORK_DIR}/timings.csv)
check(replica_capacity "^(plain|gamma [123]) needs [1-9][0-9]* GPUs\n$")
check(simulated_rounds "^3\\.3[0-9]+ tokens per step; Eq. 1 has 3\\.3616\n$")
run(${WORK_DIR}/prefix/bin/specdec --version)
foreach(terms share/doc/specdec/LICENSE share/specdec/models/LICENSES.md
    share/bash-completion/completions/specdec share/zsh/site-functions/_specdec
    share/fish/vendor_completions.d/specdec.fish)
  if(NOT EXISTS ${WORK_DIR}/prefix/${terms})
    message(FATAL_ERROR "${terms} is not installed")
  endif()
endforeach()

run(${CXX_COMPILER} -std=c++20 -Wall -Wextra -Werror -pthread -I ${WORK_DIR}/prefix/include/specdec
  ${CONSUMER_DIR}/speculate_alone.cpp -o ${WORK_DIR}/speculate_alone)
run(${WORK_DIR}/speculate_alone)
