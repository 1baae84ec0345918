#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/values.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace specdec::cli {

/// The options of one command. Declares them to CLI11, which this folder alone sees, checks each
/// value against its legal range, and remembers all of them for the "inputs" of the JSON output.
///
/// `names` is CLI11's list, for instance "-k,--gamma,--num-speculative-tokens"; JSON keys use the first long name, and
/// messages the long name that was given, or else the first. A target with a value before parsing shows it as its
/// default.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(&app) {}

  // The targets of numbers, integers, texts and choices are double, std::int64_t and std::string, or optional ones.
  template <class Target>
  void number(const std::string& names, Target& target, const LegalRange& range, const std::string& help);

  template <class Target>
  void integer(const std::string& names, Target& target, const LegalRange& range, const std::string& help);

  using Parser = std::function<void(std::string_view option, const std::string& text)>;
  /// A value in a form of its own, which `take` reads; the "inputs" have its text.
  /// @param usual  the text of its default, which `take` is not given
  void value(const std::string& names, const std::string& value_name, const std::string& help, const Parser& take,
             const std::optional<std::string>& usual = {});

  /// `value_name` stands for the value in the help text.
  template <class Target>
  void text(const std::string& names, Target& target, const std::string& value_name, const std::string& help);

  /// Any number of values, behind one mention of the option or several.
  void texts(const std::string& names, std::vector<std::string>& target, const std::string& value_name,
             const std::string& help);

  void flag(const std::string& names, bool& target, const std::string& help);

  using Translation = std::function<std::string(const std::string& word)>;
  /// One of a few words, which `take` is given, too.
  /// @param translate  makes one of them of another word
  template <class Target>
  void choice(const std::string& names, Target& target, const std::vector<std::string>& allowed,
              const std::string& help, const Parser& take = {}, const Translation& translate = {});
  void choice(const std::string& names, const std::vector<std::string>& allowed, const std::string& help,
              const Parser& take, const Translation& translate = {});

  /// A value that stands on the command line without a name, for instance a file; it must be given. `name` is in
  /// capitals, as in a configuration file, and in lower-case the key of the "inputs": argument("TRACE", ...) is
  /// "trace".
  void argument(const std::string& name, std::string& target, const std::string& help);
  enum class Least { none, one };
  /// Any number of them; the key of the "inputs" is the plural: arguments("TRACE", ...) is "traces". The last
  /// declaration of a command only.
  void arguments(const std::string& name, std::vector<std::string>& target, const std::string& help,
                 Least least = Least::one);

  /// Texts of values in forms of their own are those of their defaults again.
  void forget();

  /// Options declared from here on stand under this heading in the help text.
  void group(const std::string& heading) { group_ = heading; }

  /// Text below the options in the help, for examples.
  void footer(const std::string& text);

  /// The options that --help shows, in this order; the others are under --help-all.
  void shown_first(const std::vector<std::string>& names);

  /// The words of this run as a shell takes them, for what is to say how it was made.
  std::string command_line() const { return shell_words(words_); }
  /// To be called before the words are parsed.
  void remember_words(std::vector<std::string> words) { words_ = std::move(words); }

  /// Whether the user gave the option with this first long name, "--gamma": on the command line, or in a configuration
  /// file with another value than the default, which --print-config writes there.
  /// @throws std::out_of_range if there is no such option
  bool is_given(std::string_view option) const;

  /// The keys of the options of which is_given holds.
  std::vector<std::string> given() const;

  /// Every option with its value after parsing, null where it has none, keys as in JSON output.
  nlohmann::ordered_json effective() const;
  /// Whether --quiet is given.
  bool quiet() const;

 private:
  struct Declared {
    std::string key;
    std::function<nlohmann::ordered_json()> value;
    const CLI::Option* option;
    nlohmann::ordered_json initial;
  };
  bool is_given(const Declared& declared) const;
  void remember(std::string key, std::function<nlohmann::ordered_json()> value, const CLI::Option* option);

  template <class Target>
  void add(const std::string& names, Target& target, const std::string& value_name, const std::string& help,
           const Parser& parse);

  /// For "-k,--gamma,--at" the long name that the command line uses, or else the first one.
  std::string name_as_given(const std::string& names) const;

  CLI::App* app_;
  std::string group_ = "Options";
  std::vector<std::string> words_;
  std::vector<Declared> declared_;
  struct OwnText {
    std::optional<std::string> text, usual;
  };
  std::deque<OwnText> texts_;
};

/// Options by name without dashes, and the values of each.
using OptionValues = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Options that no command line gives: each target keeps its default, or what it is given here.
class DefaultOptions {
 public:
  DefaultOptions();
  ~DefaultOptions();
  Options& get() { return options_; }

  /// The first long name of the option that has this one, both without dashes; empty if there is none.
  std::optional<std::string> name_of(const std::string& name) const;
  /// Sets the targets of these options, and of no others.
  /// @throws UsageError as if they stood on a command line
  void give(const OptionValues& values);

 private:
  std::unique_ptr<CLI::App> app_;
  Options options_;
};

}  // namespace specdec::cli
