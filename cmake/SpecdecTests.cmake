# specdec_test(<name> LABEL <question> SOURCES ... [LIBRARIES ...] [WORKING_DIRECTORY ...])
# One executable per question and area; each TEST_CASE becomes one CTest test with that label.
include(Catch)

function(specdec_test name)
  cmake_parse_arguments(arg "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE specdec_test_main ${arg_LIBRARIES})
  target_compile_definitions(${name} PRIVATE SPECDEC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_precompile_headers(${name} REUSE_FROM specdec_test_main)
  specdec_compile_options(${name})
  catch_discover_tests(${name} TEST_PREFIX "${name}: " PROPERTIES LABELS ${arg_LABEL})
endfunction()
