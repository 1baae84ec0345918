# specdec_test(<name> LABEL <question> [COST <seconds>] SOURCES ... [LIBRARIES ...])
# One executable per question and area; each TEST_CASE becomes one CTest test with that label. The target
# tests_<question> builds all executables of a question. CTest starts what costs most first, so that no core waits for a
# long test that was started last; here as for other tests, the seconds are those of the longest, roughly.
include(Catch)

# specdec_test_options(<target>): the code of tests is optimised less than what it tests.
function(specdec_test_options target)
  specdec_compile_options(${target})
  specdec_compile_lightly(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()

# specdec_test_target(<question> <executable>): tests_<question> builds the executable.
function(specdec_test_target question executable)
  if(NOT TARGET tests_${question})
    add_custom_target(tests_${question})
  endif()
  add_dependencies(tests_${question} ${executable})
endfunction()

function(specdec_test name)
  cmake_parse_arguments(arg "" "LABEL;COST" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  foreach(source ${arg_SOURCES})
    file(STRINGS ${source} unusable REGEX "^TEST_CASE\\(\"[^\"]*[][;]")
    if(unusable)
      message(FATAL_ERROR "${source}: CTest cannot select a test with one of [ ] ; in its name: ${unusable}")
    endif()
  endforeach()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE specdec_test_main ${arg_LIBRARIES})
  target_precompile_headers(${name} REUSE_FROM specdec_test_main)
  specdec_test_options(${name})
  specdec_test_target(${arg_LABEL} ${name})
  set(tests "*")
  if(NOT SPECDEC_LONG_TESTS)
    set(tests "~[long]")
  endif()
  catch_discover_tests(${name} TEST_SPEC ${tests} TEST_PREFIX "${name}: " PROPERTIES LABELS ${arg_LABEL} COST ${arg_COST})
endfunction()
