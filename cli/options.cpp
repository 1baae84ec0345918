#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "cli/help.hpp"

namespace specdec::cli {
namespace {

/// "gamma" of "-k,--gamma,--num-speculative-tokens".
std::string first_long_name(const std::string& names) {
  const std::size_t start = names.find("--") + 2;
  return names.substr(start, names.find(',', start) - start);
}

std::string json_key(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

template <class Value>
nlohmann::ordered_json json_of(const Value& value) {
  return value;
}

template <class Value>
nlohmann::ordered_json json_of(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

template <class Value>
std::string text_of(const Value& value) {
  return fmt::format("{}", value);
}

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "";
}

int lower(char c) { return std::tolower(static_cast<unsigned char>(c)); }

}  // namespace

template <class Target>
void Options::add(const std::string& names, Target& target, const std::string& value_name, const std::string& help,
                  const Parser& parse) {
  const std::string name = first_long_name(names);
  CLI::Option* const option = app_->add_option(
      names,
      [this, parse, names](const CLI::results_t& given) {
        parse(name_as_given(names), given.front());
        return true;
      },
      help);
  option->type_name(value_name)->group(group_);
  option->default_str(text_of(target));
  remember(
      json_key(name), [&target] { return json_of(target); }, option);
}

template <class Target>
void Options::number(const std::string& names, Target& target, const LegalRange& range, const std::string& help) {
  add(names, target, "X", help, [&target, range](std::string_view option, const std::string& text) {
    target = parse_number(option, text, range);
  });
}

template <class Target>
void Options::integer(const std::string& names, Target& target, const LegalRange& range, const std::string& help) {
  add(names, target, "N", help, [&target, range](std::string_view option, const std::string& text) {
    const bool has_end = std::isfinite(range.hi);
    target = parse_integer(option, text, static_cast<std::int64_t>(range.lo),
                           has_end ? static_cast<std::int64_t>(range.hi) : std::numeric_limits<std::int64_t>::max());
  });
}

template <class Target>
void Options::text(const std::string& names, Target& target, const std::string& value_name, const std::string& help) {
  add(names, target, value_name, help, [&target](std::string_view, const std::string& text) { target = text; });
}

void Options::value(const std::string& names, const std::string& value_name, const std::string& help,
                    const Parser& take, const std::optional<std::string>& usual) {
  std::optional<std::string>& kept = texts_.emplace_back(OwnText{usual, usual}).text;
  add(names, kept, value_name, help, [&kept, take](std::string_view option, const std::string& text) {
    take(option, text);
    kept = text;
  });
}

void Options::forget() {
  for (OwnText& own : texts_) own.text = own.usual;
}

void Options::texts(const std::string& names, std::vector<std::string>& target, const std::string& value_name,
                    const std::string& help) {
  CLI::Option* const option = app_->add_option(
      names,
      [&target](const CLI::results_t& given) {
        target = given;
        return true;
      },
      help);
  option->type_name(value_name)->group(group_)->expected(1, -1)->allow_extra_args();
  remember(
      json_key(first_long_name(names)), [&target] { return json_of(target); }, option);
}

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  const CLI::Option* const option = app_->add_flag(names, target, help)->group(group_);
  remember(
      json_key(first_long_name(names)), [&target] { return json_of(target); }, option);
}

/// Names of engines and formats are found in whatever case they are typed.
template <class Target>
void Options::choice(const std::string& names, Target& target, const std::vector<std::string>& allowed,
                     const std::string& help, const Parser& take, const Translation& translate) {
  const std::string value_name = fmt::format("{}", fmt::join(allowed, "|"));
  const auto choose = [&target, allowed, take, translate](std::string_view option, const std::string& text) {
    const std::string meant = translate ? translate(text) : text;
    const auto found = std::ranges::find_if(
        allowed, [&meant](const std::string& word) { return std::ranges::equal(word, meant, {}, lower, lower); });
    if (found == allowed.end()) refuse(option, text, fmt::format("one of {}", fmt::join(allowed, ", ")));
    target = *found;
    if (take) take(option, *found);
  };
  add(names, target, value_name, help, choose);
}

void Options::choice(const std::string& names, const std::vector<std::string>& allowed, const std::string& help,
                     const Parser& take, const Translation& translate) {
  choice(names, texts_.emplace_back().text, allowed, help, take, translate);
}

using Words = std::vector<std::string>;
template void Options::number(const std::string&, double&, const LegalRange&, const std::string&);
template void Options::number(const std::string&, std::optional<double>&, const LegalRange&, const std::string&);
template void Options::integer(const std::string&, std::int64_t&, const LegalRange&, const std::string&);
template void Options::integer(const std::string&, std::optional<std::int64_t>&, const LegalRange&, const std::string&);
template void Options::text(const std::string&, std::string&, const std::string&, const std::string&);
template void Options::text(const std::string&, std::optional<std::string>&, const std::string&, const std::string&);
template void Options::choice(const std::string&, std::string&, const Words&, const std::string&, const Parser&,
                              const Translation&);
template void Options::choice(const std::string&, std::optional<std::string>&, const Words&, const std::string&,
                              const Parser&, const Translation&);

void Options::argument(const std::string& name, std::string& target, const std::string& help) {
  const CLI::Option* const option = app_->add_option(name, target, help)->required()->type_name("");
  remember(
      json_key(name), [&target] { return json_of(target); }, option);
}

void Options::arguments(const std::string& name, std::vector<std::string>& target, const std::string& help,
                        Least least) {
  const CLI::Option* const option = app_->add_option(name, target, help)->required(least == Least::one)->type_name("");
  remember(
      json_key(name) + 's', [&target] { return json_of(target); }, option);
}

void Options::footer(const std::string& text) { app_->footer(text); }

void Options::shown_first(const std::vector<std::string>& names) {
  app_->set_help_all_flag("--help-all", "Print all options and exit");
  app_->formatter(std::make_shared<BriefHelp>(names));
  app_->get_formatter()->column_width(help_column);
}

std::string Options::name_as_given(const std::string& names) const {
  const std::vector<std::string_view> all = split(names, ',');
  for (auto word = words_.rbegin(); word != words_.rend(); ++word) {
    const std::string name = word->substr(0, word->find('='));
    if (name.rfind("--", 0) == 0 && std::find(all.begin(), all.end(), name) != all.end()) return name;
  }
  return "--" + first_long_name(names);
}

bool Options::quiet() const { return effective().at("quiet").get<bool>(); }

nlohmann::ordered_json Options::effective() const {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::object();
  for (const Declared& declared : declared_) inputs[declared.key] = declared.value();
  return inputs;
}

bool Options::is_given(std::string_view option) const {
  const std::string key = json_key(std::string(option.substr(2)));
  const auto found = std::find_if(declared_.begin(), declared_.end(), [&](const Declared& d) { return d.key == key; });
  if (found == declared_.end()) throw std::out_of_range(fmt::format("is_given: {} is no option", option));
  return is_given(*found);
}

std::vector<std::string> Options::given() const {
  std::vector<std::string> keys;
  for (const Declared& declared : declared_) {
    if (is_given(declared)) keys.push_back(declared.key);
  }
  return keys;
}

bool Options::is_given(const Declared& declared) const {
  // Options from a configuration file are not part of the order in which the words were read.
  const std::vector<CLI::Option*>& on_line = app_->parse_order();
  if (std::find(on_line.begin(), on_line.end(), declared.option) != on_line.end()) return true;
  return !declared.option->empty() && declared.value() != declared.initial;
}

void Options::remember(std::string key, std::function<nlohmann::ordered_json()> value, const CLI::Option* option) {
  nlohmann::ordered_json initial = value();
  declared_.push_back({std::move(key), std::move(value), option, std::move(initial)});
}

DefaultOptions::DefaultOptions() : app_(std::make_unique<CLI::App>()), options_(*app_) {}
DefaultOptions::~DefaultOptions() = default;

std::optional<std::string> DefaultOptions::name_of(const std::string& name) const {
  const CLI::Option* const option = app_->get_option_no_throw("--" + name);
  if (option == nullptr || option->get_lnames().empty()) return std::nullopt;
  return option->get_lnames().front();
}

void DefaultOptions::give(const OptionValues& values) {
  std::vector<std::string> words;
  for (const auto& [name, of_option] : values) {
    for (const std::string& value : of_option) words.push_back(fmt::format("--{}={}", name, value));
  }
  std::reverse(words.begin(), words.end());
  try {
    app_->parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace specdec::cli
