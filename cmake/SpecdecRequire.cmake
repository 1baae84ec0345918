# What the build needs and Debian has: where it is missing, the error names the script that installs it.
set(specdec_missing "is missing: on Debian 12 `scripts/install_packages build` installs what the build needs")

macro(specdec_enable_cxx)
  include(CheckLanguage)
  check_language(CXX)
  if(NOT CMAKE_CXX_COMPILER)
    message(FATAL_ERROR "specdec: a C++ compiler ${specdec_missing}")
  endif()
  enable_language(CXX)
endmacro()

# find_package(PACKAGE [...]), required.
macro(specdec_require package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "specdec: ${package} ${specdec_missing}")
  endif()
endmacro()
