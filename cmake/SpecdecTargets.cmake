# specdec_library(<layer>): a static library specdec_<layer>, alias specdec::<layer>, with headers beside sources.
# specdec_sources(<layer> HEADERS ... SOURCES ... PURE ... KERNELS ...): adds files of the calling folder to it. PURE are
# sources that a plan of stated numbers needs, without threads and recordings; web/ compiles them, too. KERNELS are those
# whose loops are worth -O3; Highway compiles them once for each instruction set, so they join no unity build.
# specdec_compile_options(<target>): warnings and sanitizers, private, so that they never reach the export.
# specdec_compile_lightly(<target>): for what runs for milliseconds and compiles for minutes, as what makes answers and
# draws them does: debug builds do not optimise it, release builds little, and no fuzzer counts its edges. Half-inlined,
# gcc 12 mistakes the short buffers of strings for ones that overflow.

function(specdec_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion
    -Wno-sign-conversion $<$<BOOL:${SPECDEC_WERROR}>:-Werror>)
  if(CMAKE_UNITY_BUILD)
    # gcc takes every file that a unity source includes for a header.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(SPECDEC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SPECDEC_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${SPECDEC_SANITIZE})
  endif()
endfunction()

function(specdec_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0> $<$<CONFIG:Release>:-O1>
    "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-restrict>"
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=fuzzer-no-link>)
endfunction()

function(specdec_library layer)
  add_library(specdec_${layer} STATIC)
  add_library(specdec::${layer} ALIAS specdec_${layer})
  set_target_properties(specdec_${layer} PROPERTIES EXPORT_NAME ${layer} POSITION_INDEPENDENT_CODE ON
    VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})
  target_compile_features(specdec_${layer} PUBLIC cxx_std_20)
  target_include_directories(specdec_${layer} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/specdec>)
  specdec_compile_options(specdec_${layer})
  if(SPECDEC_BUILD_FUZZ)
    target_compile_options(specdec_${layer} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(specdec_sources layer)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;PURE;KERNELS" ${ARGN})
  # In one order, so that what is pure does not decide which files a unity build joins.
  set(sources ${arg_SOURCES} ${arg_PURE})
  if(arg_PURE)
    list(SORT sources)
  endif()
  target_sources(specdec_${layer}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS}
    PRIVATE ${sources} ${arg_KERNELS})
  list(TRANSFORM arg_PURE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(TARGET specdec_${layer} APPEND PROPERTY SPECDEC_PURE_SOURCES ${arg_PURE})
  if(arg_KERNELS)
    # Checks of every index keep sums in memory that belong into registers; AddressSanitizer's come after that choice.
    set_source_files_properties(${arg_KERNELS} TARGET_DIRECTORY specdec_${layer} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON
      COMPILE_OPTIONS "-O3;$<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=undefined,fuzzer-no-link>")
  endif()
endfunction()
