#include <nanobind/nanobind.h>

#include "python/bindings.hpp"
#include "python/recordings.hpp"
#include "render/version.hpp"

NB_MODULE(_core, module) {
  using namespace specdec;
  using namespace specdec::python;
  module.attr("__version__") = nanobind::str(render::version().data(), render::version().size());
  translate_errors();
  bind_theory(module);
  bind_nouns(module);
  bind_recordings(module);
  bind_answers(module);
}
