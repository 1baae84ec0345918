#include "cli/version.hpp"

#include <fmt/core.h>

int main() { fmt::print("specdec {}\n", specdec::cli::version); }
