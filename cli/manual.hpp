#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace specdec::cli {

/// The program's manual page, of section 1, in man(7)'s language: all commands with all their options, as declared.
std::string manual_page(const CLI::App& program);

}  // namespace specdec::cli
