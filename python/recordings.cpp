#include "python/recordings.hpp"

#include <fmt/format.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>

#include "planner/acceptance.hpp"
#include "planner/question_error.hpp"
#include "python/arguments.hpp"
#include "python/bindings.hpp"
#include "python/interruption.hpp"
#include "traces/check_trace.hpp"
#include "traces/position_batch.hpp"
#include "traces/prompt_id.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_writer.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

using Labels = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

traces::RowSpace space_named(const std::string& kind) {
  if (kind == "probs") return traces::RowSpace::probabilities;
  if (kind == "logprobs") return traces::RowSpace::log_probabilities;
  if (kind == "logits") return traces::RowSpace::logits;
  planner::refuse("--kind", kind, "one of probs, logprobs, logits");
}

/// "auto" is none of them.
std::optional<traces::RowSpace> numbers_named(const std::string& numbers) {
  if (numbers == "auto") return std::nullopt;
  if (numbers == "probabilities") return traces::RowSpace::probabilities;
  if (numbers == "logprobs") return traces::RowSpace::log_probabilities;
  if (numbers == "logits") return traces::RowSpace::logits;
  planner::refuse("--numbers", numbers, "one of auto, probabilities, logprobs, logits");
}

Recording recording_of_files(const nb::dict& given) {
  const Arguments arguments(given);
  planner::RecordingFiles files;
  arguments.take("files", files.files);
  files.how.target = arguments.get<std::string>("target");
  files.how.draft = arguments.get<std::string>("draft");
  files.how.space = numbers_named(arguments.get<std::string>("numbers"));
  arguments.take("target_array", files.how.target_array);
  arguments.take("draft_array", files.how.draft_array);
  arguments.take("salvage", files.how.salvage);
  Recording recording(std::move(files), arguments.has("columns"));
  {
    const nb::gil_scoped_release released;
    recording.open();
  }
  return recording;
}

/// One of the two arrays of rows.
Array array_of(const char* name, nb::handle given) {
  Array array;
  if (!nb::try_cast(given, array)) {
    throw nb::type_error(
        fmt::format("{} is {}, but must be an array of floats in this machine's byte order: NumPy's, or "
                    "one that speaks DLPack",
                    name, nb::cast<std::string>(nb::str(nb::type_name(given.type()))))
            .c_str());
  }
  if (array.device_type() != nb::device::cpu::value)
    throw nb::type_error(fmt::format("{} is on another device, but must be in the memory of the CPU", name).c_str());
  if (array.ndim() != 1 && array.ndim() != 2) {
    planner::refuse(fmt::format("--{}", name), fmt::format("{}-dimensional", array.ndim()),
                    "of shape (positions, vocabulary), or (positions) for the emitted tokens");
  }
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != stride)
      planner::refuse(fmt::format("--{}", name), "not contiguous",
                      "C-contiguous: numpy.ascontiguousarray copies it so");
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
  return array;
}

traces::ElementType type_of(const char* name, const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  const bool is_float = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float);
  if (is_float && type.bits == 64) return traces::ElementType::f64;
  if (is_float && type.bits == 32) return traces::ElementType::f32;
  if (is_float && type.bits == 16) return traces::ElementType::f16;
  if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat) && type.bits == 16)
    return traces::ElementType::bf16;
  planner::refuse(fmt::format("--{}", name), "of another type", "of float64, float32, float16 or bfloat16");
}

/// Positions of two arrays, and what is said of each.
void append(Recording& recording, nb::handle p, nb::handle q, const std::optional<Labels>& tokens,
            const std::optional<Labels>& sequences, const std::optional<Labels>& prompts, const std::string& kind,
            const std::string& task) {
  const Array target = array_of("p", p), draft = array_of("q", q);
  traces::MemoryPositions positions;
  positions.size = static_cast<std::int64_t>(target.shape(0));
  positions.vocab = target.ndim() == 2 ? static_cast<std::int64_t>(target.shape(1)) : 0;
  positions.space = space_named(kind);
  positions.type = type_of("p", target);
  if (type_of("q", draft) != positions.type) planner::refuse("--q", "of another type than p", "of the same");
  const auto shape_of = [](const Array& array) {
    return array.ndim() == 2 ? fmt::format("({}, {})", array.shape(0), array.shape(1))
                             : fmt::format("({})", array.shape(0));
  };
  if (shape_of(draft) != shape_of(target))
    planner::refuse("--q", "of shape " + shape_of(draft), fmt::format("of {}, as p is", shape_of(target)));
  if (positions.size == 0) planner::refuse("--p", "empty", "of one position at least");
  positions.target = static_cast<const std::byte*>(target.data());
  positions.draft = static_cast<const std::byte*>(draft.data());
  const auto copied = [](const std::optional<Labels>& labels) {
    return labels ? std::vector(labels->data(), labels->data() + labels->shape(0)) : std::vector<std::int64_t>();
  };
  positions.tokens = copied(tokens);
  positions.sequences = copied(sequences);
  positions.prompt = copied(prompts);
  positions.task = task;
  recording.memory().append(std::move(positions));
  recording.keep(target);
  recording.keep(draft);
}

void save(const Recording& recording, const std::string& path) {
  const nb::gil_scoped_release released;
  const auto source = recording.open();
  for (const std::filesystem::path& file : source->files()) {
    std::error_code none;
    if (std::filesystem::equivalent(file, path, none)) planner::refuse("--path", path, "none that is read");
  }
  traces::PositionBatch batch;
  std::optional<traces::TraceWriter> writer;
  while (source->read(batch)) {
    end_if_interrupted();
    traces::require_sound_rows(*source, batch);
    if (!writer) writer.emplace(path, source->metadata());
    writer->write(batch);
  }
  if (!writer) throw planner::QuestionError("the recording holds no position");
  writer->set_task_names(source->metadata().task_names);
  writer->finish();
}

/// The columns of a trace, which docs/reference/formats.md names; what is absent is an empty column.
class Columns {
 public:
  explicit Columns(const nb::dict& given) : given_(given) {}

  template <class Value>
  std::span<const Value> get(const char* name) const {
    if (!given_.contains(name)) return {};
    const Array array = array_of(name, nb::object(given_[name]));
    if (array.dtype() != nb::dtype<Value>()) throw nb::type_error(fmt::format("{} is of another type", name).c_str());
    return {static_cast<const Value*>(array.data()), array.size()};
  }

  void get_rows(const traces::column::Model& model, traces::Rows& rows) const {
    for (const traces::RowSpace space :
         {traces::RowSpace::logits, traces::RowSpace::log_probabilities, traces::RowSpace::probabilities}) {
      const char* const name = model.rows(space);
      if (!given_.contains(name)) continue;
      const Array array = array_of(name, nb::object(given_[name]));
      rows.space = space;
      rows.type = type_of(name, array);
      rows.vocab = width_of(array);
      rows.bytes = {static_cast<const std::byte*>(array.data()), array.nbytes()};
      return;
    }
  }

  void get_top_k(const traces::column::Model& model, traces::TopK& list) const {
    if (!given_.contains(model.topk_ids)) return;
    list.k = width_of(array_of(model.topk_ids, nb::object(given_[model.topk_ids])));
    list.ids = get<std::int32_t>(model.topk_ids);
    list.logprobs = get<float>(model.topk_logprobs);
    list.tail_logprob = get<float>(model.tail_logprob);
    list.at_other = get<float>(model.at_other_topk);
  }

 private:
  static std::int64_t width_of(const Array& array) {
    return array.ndim() == 2 ? static_cast<std::int64_t>(array.shape(1)) : 1;
  }

  nb::dict given_;
};

/// A trace of columns that lie in memory, "token" among them.
void write_trace(const std::string& path, const std::map<std::string, std::string>& metadata, const nb::dict& given) {
  const Columns columns(given);
  traces::PositionBatch batch;
  batch.sequence = columns.get<std::int64_t>(traces::column::seq);
  batch.place = columns.get<std::int64_t>(traces::column::pos);
  batch.token = columns.get<std::int32_t>(traces::column::token);
  batch.task = columns.get<std::int32_t>(traces::column::task);
  batch.prompt = columns.get<std::int64_t>(traces::column::prompt);
  columns.get_rows(traces::column::target, batch.target_rows);
  columns.get_rows(traces::column::draft, batch.draft_rows);
  columns.get_top_k(traces::column::target, batch.target_top_k);
  columns.get_top_k(traces::column::draft, batch.draft_top_k);
  batch.target_token_logprob = columns.get<float>(traces::column::target.token_logprob);
  batch.draft_token_logprob = columns.get<float>(traces::column::draft.token_logprob);
  batch.target_token_rank = columns.get<std::int32_t>(traces::column::target.token_rank);
  batch.draft_token_rank = columns.get<std::int32_t>(traces::column::draft.token_rank);
  batch.overlap = columns.get<float>(traces::column::overlap);
  batch.size = static_cast<std::int64_t>(batch.token.size());
  const nb::gil_scoped_release released;
  traces::TraceWriter writer(path, traces::metadata_from_strings(metadata, path));
  writer.write(batch);
  writer.finish();
}

planner::Acceptance acceptance(const Recording& recording, const nb::dict& given) {
  const planner::RecordingOptions options = recording_options(given);
  const nb::gil_scoped_release released;
  planner::Acceptance acceptance = planner::Acceptance::from_recording(*recording.open(), options);
  if (recording.of_columns()) acceptance.files.clear();
  return acceptance;
}

}  // namespace

void bind_recordings(nb::module_& module) {
  nb::class_<Recording>(module, "Recording")
      .def("append", append, nb::arg("p").none(), nb::arg("q").none(), nb::arg("tokens").none(),
           nb::arg("sequences").none(), nb::arg("prompt").none(), nb::arg("kind"), nb::arg("task"))
      .def("save", save)
      .def_prop_ro("positions",
                   [](const Recording& recording) {
                     const nb::gil_scoped_release released;
                     return recording.open()->positions();
                   })
      .def_prop_ro("files",
                   [](const Recording& recording) {
                     const nb::gil_scoped_release released;
                     std::vector<std::string> names;
                     for (const std::filesystem::path& file : recording.open()->files()) names.push_back(file.string());
                     return names;
                   })
      .def_prop_ro("metadata",
                   [](const Recording& recording) {
                     const nb::gil_scoped_release released;
                     return traces::to_strings(recording.open()->metadata());
                   })
      .def_prop_ro("sequences", [](Recording& recording) { return recording.memory().sequences(); });
  module.def("recording_of_files", recording_of_files);
  module.def("recording_in_memory", [](const std::map<std::string, std::string>& metadata) {
    return Recording(traces::metadata_from_strings(metadata, {}));
  });
  module.def("write_trace", write_trace, nb::arg("path"), nb::arg("metadata"), nb::arg("columns"));
  module.def("prompt_id", [](const std::string& text) { return traces::prompt_id(text); });
  module.def("acceptance_of_recording", acceptance);
}

}  // namespace specdec::python
