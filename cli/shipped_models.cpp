#include "cli/shipped_models.hpp"

#include <system_error>

namespace specdec::cli {

std::filesystem::path shipped_models() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path installed = fs::read_symlink("/proc/self/exe", error).parent_path() / "../share/specdec/models";
  if (!fs::exists(installed, error) && fs::exists(SPECDEC_SHIPPED_MODELS, error)) return SPECDEC_SHIPPED_MODELS;
  return installed.lexically_normal();
}

}  // namespace specdec::cli
