#include "traces/open_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/csv_records.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/joined_recordings.hpp"
#include "traces/serving/read_serving_counts.hpp"
#include "traces/trace_reader.hpp"
#include "traces/unpaired_file.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// Refuses files of a format that holds one model each, unless they are given as a pair.
void require_pair(std::span<const fs::path> files, const char* content) {
  if (files.empty()) return;
  throw UnpairedFile(files.front(), "file", fmt::format("{} of one model", content),
                     "given as a pair, the target's and the draft's");
}

void refuse_half(const OpenOptions& options, std::string_view format) {
  if (!options.pair()) return;
  throw FileError(options.target, "file", fmt::format("{}, no half of a pair", format),
                  fmt::format("one model's, as NPY, llama.cpp logits and the answers of engines are: {} holds both "
                              "models and is given alone",
                              format));
}

/// Opens files of a format that holds both models in one, and reads them one after the other.
template <class Open>
std::unique_ptr<PositionSource> open_each(std::span<const fs::path> files, const OpenOptions& options, Open open,
                                          std::string_view format) {
  refuse_half(options, format);
  if (files.size() == 1) return open(files.front(), options);
  std::vector<std::unique_ptr<PositionSource>> sources;
  for (const fs::path& file : files) sources.push_back(open(file, options));
  return std::make_unique<JoinedRecordings>(std::move(sources));
}

/// What `analyze` reads.
constexpr const char* readable =
    "a recording, such as arrays p_logprobs and q_logprobs in NPZ, or JSONL or CSV with p_logprob and q_logprob: "
    "docs/reference/formats.md";
constexpr std::string_view npz = "NPZ", position_traces = "position traces", pairs_jsonl = "JSONL of token pairs",
                           pairs_csv = "CSV of token pairs";

/// Every readable format, specific ones before general ones.
std::vector<TraceFormat> all_formats() {
  return {
      {"specdec-trace (safetensors)", [](const FileHead& head) { return head.folder || is_safetensors(head.bytes); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         refuse_half(options, "a specdec-trace");
         ReaderOptions reader_options;
         reader_options.salvage = options.salvage;
         reader_options.on_error = options.on_error;
         return read_trace(files, std::move(reader_options));
       }},
      {"record of requests (scripts/record_openai.py)",
       [](const FileHead& head) { return is_request_record(head.json()); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         const auto open = [](const fs::path& file, const OpenOptions&) { return open_request_record(file); };
         return open_each(files, options, open, "a record of requests");
       }},
      {"llama.cpp logits", [](const FileHead& head) { return is_llamacpp_logits(head.bytes); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         require_pair(files, "llama.cpp logits");
         return open_llamacpp_logits(options.target, options.draft);
       }},
      {"NPY", [](const FileHead& head) { return is_npy(head.bytes); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         require_pair(files, "an array");
         return open_npy_pair(options.target, options.draft, options);
       }},
      {npz, [](const FileHead& head) { return is_npz(head.bytes); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         return open_each(files, options, open_npz, npz);
       }},
      {position_traces, [](const FileHead& head) { return is_position_traces(head.json()); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         return open_each(files, options, open_position_traces, position_traces);
       }},
      {pairs_jsonl, [](const FileHead& head) { return is_token_pairs_jsonl(head.json()); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         return open_each(files, options, open_token_pairs_jsonl, pairs_jsonl);
       }},
      {"log-probabilities of one model, two files (vLLM, SGLang, llama-server, OpenAI)",
       [](const FileHead& head) { return is_model_recording(head.json()); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         if (!options.pair()) {
           throw FileError(files.front(), "file", "log-probabilities of one model",
                           "one of two: the target's and the draft's of the same texts");
         }
         return open_paired_recordings(options.target, options.draft);
       }},
      {pairs_csv, [](const FileHead& head) { return is_token_pairs_csv(head.bytes); },
       [](std::span<const fs::path> files, const OpenOptions& options) {
         return open_each(files, options, open_token_pairs_csv, pairs_csv);
       }},
  };
}

/// The format of a table with a column of at least one model, by the names that the options give: its reader reports
/// what is missing.
std::string_view table_format(const FileHead& head, const OpenOptions& options) {
  if (!head.json().empty()) return names_a_model_jsonl(head.json(), options) ? pairs_jsonl : "";
  return names_a_model_csv(head.bytes, options) ? pairs_csv : "";
}

/// The format of each file, which must be the same for all.
TraceFormat format_of(std::span<const fs::path> files, const OpenOptions& options) {
  const std::vector<TraceFormat> formats = all_formats();
  const TraceFormat* first = nullptr;
  for (const fs::path& file : files) {
    const FileHead head = FileHead::of(file);
    auto found = std::find_if(formats.begin(), formats.end(), [&](const TraceFormat& f) { return f.recognises(head); });
    if (found == formats.end()) {
      found = std::find_if(formats.begin(), formats.end(),
                           [name = table_format(head, options)](const TraceFormat& f) { return f.name == name; });
    }
    if (found == formats.end()) {
      if (recognised_counts(head)) {
        throw FileError(file, "content", "counts, which `specdec counters` reads", readable);
      }
      head.refuse_format(readable,
                         "a table whose first line names the target's and the draft's column, such as p_logprob and "
                         "q_logprob, or as target_array and draft_array say");
    }
    if (first == nullptr) first = &*found;
    if (&*found != first) {
      throw FileError(file, "content", std::string(found->name),
                      fmt::format("{}, as {} is", first->name, files.front().string()));
    }
  }
  return *first;
}

}  // namespace

bool recognised_trace(const FileHead& head) {
  const std::vector<TraceFormat> formats = all_formats();
  return std::any_of(formats.begin(), formats.end(), [&](const TraceFormat& f) { return f.recognises(head); });
}

FileHead FileHead::of(const fs::path& path) {
  constexpr std::size_t longest = std::size_t{64} << 10U;
  FileHead head;
  head.path = path;
  std::error_code error;
  const fs::path from = readable_path(path);
  if (fs::is_directory(from, error)) {
    head.folder = true;
    return head;
  }
  const auto size = fs::file_size(from, error);
  std::ifstream file(from, std::ios::binary);
  if (error || !file) {
    const std::error_code reason = error ? error : std::error_code(errno, std::generic_category());
    throw FileError(path, "file", fmt::format("unreadable ({})", reason.message()), "a readable file");
  }
  head.size = static_cast<std::int64_t>(size);
  head.bytes.resize(std::min<std::size_t>(longest, size));
  file.read(head.bytes.data(), static_cast<std::streamsize>(head.bytes.size()));
  head.bytes.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

std::string_view FileHead::json() const {
  std::string_view text = without_byte_order_mark(bytes);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.starts_with('{') || text.starts_with('[') ? text : std::string_view();
}

std::string FileHead::excerpt() const {
  return fmt::format("it begins \"{}\"", printable(std::string_view(bytes).substr(0, 16)));
}

std::string_view FileHead::compression() const {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> magics = {{{"\x1f\x8b", "gzip"},
                                                                                    {"\x28\xb5\x2f\xfd", "zstd"},
                                                                                    {"PK\x03\x04", "zip"},
                                                                                    {"\xfd"
                                                                                     "7zXZ",
                                                                                     "xz"},
                                                                                    {"BZh", "bzip2"}}};
  for (const auto& [magic, name] : magics) {
    if (starts_with(magic)) return name;
  }
  return {};
}

std::string FileHead::table() const {
  constexpr std::size_t shown = 200;
  std::string_view text = without_byte_order_mark(bytes);
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !json().empty()) return "";
  std::string_view first = trimmed(text.substr(0, end));
  std::string_view second = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
  const char separator = first.starts_with('|') ? '|' : csv_separator(first);
  if (separator == '|') {
    for (std::string_view* line : {&first, &second}) {
      line->remove_prefix(std::min<std::size_t>(1, line->size()));
      *line = line->substr(0, line->find_last_not_of("| \t\r") + 1);
    }
  }
  const auto separators = std::count(first.begin(), first.end(), separator);
  if (separators == 0 || std::count(second.begin(), second.end(), separator) != separators) return "";
  if (is_row_of_numbers(first, separator)) return "a table whose first line is numbers";
  std::string names(first);
  for (std::size_t at = 0; (at = names.find(" | ", at)) != std::string::npos;) names.replace(at, 3, ",");
  std::replace(names.begin(), names.end(), separator, ',');
  return "a table of the columns " + printable(names, shown);
}

void FileHead::refuse_format(const std::string& formats, std::string_view tables) const {
  const auto is_zero = [this](std::size_t i) { return i < bytes.size() && bytes[i] == '\0'; };
  const bool every_second =
      bytes.size() > 3 && is_zero(1) != is_zero(0) && is_zero(1) == is_zero(3) && is_zero(0) == is_zero(2);
  if (starts_with("\xff\xfe") || starts_with("\xfe\xff") || every_second)
    throw FileError(path, "content", "UTF-16", "UTF-8, " + formats);
  const std::string of_table = table();
  if (!of_table.empty() && !tables.empty()) {
    throw FileError(path, FileError::line(1), "file", of_table, std::string(tables));
  }
  constexpr std::string_view own = "\"schema\": \"specdec.";
  if (const std::size_t at = bytes.find(own); at != std::string_view::npos) {
    const std::string named = bytes.substr(at + own.size());
    throw FileError(path, "content", "an answer of specdec " + printable(named.substr(0, named.find('/'))),
                    "the files that it read: inputs.files names them");
  }
  const std::string_view compressed = compression();
  throw FileError(path, "content",
                  size == 0             ? "empty"
                  : !compressed.empty() ? fmt::format("{}-compressed", compressed)
                                        : fmt::format("in no known format ({})", excerpt()),
                  compressed.empty() ? formats : "decompressed first, then " + formats);
}

std::unique_ptr<PositionSource> open_trace(std::span<const fs::path> files, const OpenOptions& options) {
  if (options.target.empty() != options.draft.empty()) {
    throw std::invalid_argument("open_trace: a pair is one file, but must be a target's and a draft's");
  }
  if (files.empty() != options.pair()) {
    throw std::invalid_argument(fmt::format("open_trace: files is {} of them, but must be {}", files.size(),
                                            options.pair() ? "none beside a pair" : "at least one, or a pair"));
  }
  const KeptStreams streams;
  if (!options.pair()) return format_of(files, options).open(files, options);
  const std::array pair = {options.target, options.draft};
  return format_of(pair, options).open({}, options);
}

}  // namespace specdec::traces
