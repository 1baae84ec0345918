#pragma once

#include <filesystem>

namespace specdec::cli {

/// The folder of the models, prompts and the recording that come with the program: beside an installed binary, else in
/// the source tree. Whether it is there is for those to say who need it.
std::filesystem::path shipped_models();

}  // namespace specdec::cli
