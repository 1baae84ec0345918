#include "analysis/cost/model_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "analysis/cost/layer_shapes.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::cost {
namespace {

using nlohmann::json;
using traces::ConfigFields;
using traces::FileError;
using traces::MappedFile;

ModelSpec read_config_object(const ConfigFields& fields) {
  const std::string type = fields.has("speculators_model_type") ? "llama" : fields.word("model_type");
  std::optional<ModelSpec> model;
  try {
    model = read_architecture(type, fields);
    if (model) require_countable(*model);
  } catch (const std::overflow_error&) {
    fields.refuse("sizes", "those of a model of 2^53 parameters or more", "those of fewer");
  }
  if (!model) {
    fields.refuse("model_type", '"' + type + '"', fmt::format("one of {}", fmt::join(known_model_types(), ", ")));
  }
  model->model_type = type;
  read_weight_types(fields, *model);
  return *std::move(model);
}

/// The size of the weights by the index that safetensors writes beside its shards.
std::optional<std::int64_t> indexed_bytes(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "model.safetensors.index.json";
  if (!std::filesystem::exists(path)) return std::nullopt;
  const MappedFile file(path);
  const json document = traces::parse_config(traces::text_of(file.bytes()), path);
  const auto metadata = document.find("metadata");
  if (metadata != document.end() && metadata->is_object()) {
    const auto size = metadata->find("total_size");
    // Some tools write it as 1.6e10.
    if (size != metadata->end() && size->is_number()) {
      const double bytes = size->get<double>();
      if (bytes >= 1 && bytes < 9007199254740992.0 && bytes == std::floor(bytes)) {
        return static_cast<std::int64_t>(bytes);
      }
    }
  }
  throw FileError(path, "metadata.total_size", "missing or no number of bytes", "an integer in [1, 2^53)");
}

/// Reads the file that modelopt writes beside configurations that know nothing of it.
void read_separate_quantization(const std::filesystem::path& folder, ModelSpec& model) {
  const std::filesystem::path path = folder / "hf_quant_config.json";
  if (model.unquantized_type || !std::filesystem::exists(path)) return;
  const MappedFile file(path);
  const json document = traces::parse_config(traces::text_of(file.bytes()), path);
  read_quantization(ConfigFields(path, document).object("quantization"), model);
}

std::string name_for(const std::filesystem::path& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path named = whole.filename() == "config.json" ? whole.parent_path() : whole;
  return named.filename() == named.stem() || named != whole ? named.filename().string() : named.stem().string();
}

ModelSpec read_model_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  if (traces::text_of(file.bytes()).substr(0, 4) == "GGUF") return model_spec_from_gguf(path);
  ModelSpec model = model_spec_from_document(traces::text_of(file.bytes()), path);
  if (!has_shape(model)) {
    throw FileError(path, "config", "missing", "the model's configuration");
  }
  if (model.name.empty()) model.name = name_for(path);
  if (path.filename() == "config.json") {
    read_separate_quantization(path.parent_path(), model);
    model.weight_bytes = indexed_bytes(path.parent_path());
  }
  return model;
}

}  // namespace

ModelSpec model_spec_from_document(std::string_view json_text, const std::filesystem::path& where) {
  const json document = traces::parse_config(json_text, where);
  const ConfigFields fields(where, document);
  if (!fields.has("config") && (fields.has("model_type") || !fields.has("parameters")))
    return read_config_object(fields);

  fields.require_keys({"name", "aliases", "sources", "note", "config", "parameters", "weight_type",
                       "expert_weight_type", "checked", "target"});
  if (fields.has("config") && fields.has("parameters")) {
    fields.refuse("parameters", "present", "absent beside config, which they follow from");
  }
  ModelSpec model;
  if (fields.has("config")) {
    model = read_config_object(fields.object("config"));
  } else {
    model.stated_parameters = static_cast<std::int64_t>(fields.positive("parameters"));
  }
  model.name = fields.word("name");
  model.aliases = fields.words("aliases");
  model.sources = fields.words("sources");
  if (fields.has("target")) model.target = fields.word("target");
  const auto read_type = [&](std::string_view key, std::optional<NumberType>& type) {
    if (!fields.has(key)) return;
    const std::string name = fields.word(key);
    type = number_type_named(name);
    if (!type) fields.refuse(key, '"' + name + '"', "fp32, fp16, bf16, fp8, int8, int4, nvfp4 or mxfp4");
  };
  read_type("weight_type", model.weight_type);
  read_type("expert_weight_type", model.expert_weight_type);
  return model;
}

ModelSpec read_model_spec(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return read_model_file(path / "config.json");
  return read_model_file(path);
}

}  // namespace specdec::cost
