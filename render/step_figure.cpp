#include "render/step_figure.hpp"

#include <fmt/format.h>

#include "render/text.hpp"

namespace specdec::render {
namespace {

std::string painted(std::string_view text, std::string_view code) {
  return text.empty() ? "" : fmt::format("\x1b[{}m{}\x1b[0m", code, visible(text));
}

std::string marked(std::string_view before, std::string_view text, std::string_view after) {
  return text.empty() ? "" : fmt::format("{}{}{}", before, visible(text), after);
}

std::string element(std::string_view name, std::string_view meaning, std::string_view text) {
  if (text.empty()) return "";
  return fmt::format("<{0} class=\"{1}\" title=\"{1}\">{2}</{0}>", name, meaning, escaped(text));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string figure_of_steps(const std::vector<FigureStep>& steps, bool colour) {
  std::string figure;
  std::string so_far;
  for (const FigureStep& step : steps) {
    figure += visible(so_far);
    if (colour) {
      figure += painted(step.accepted, "32") + painted(step.rejected, "31;9") + painted(step.extra, "34");
    } else {
      figure += marked("<", step.accepted, ">") + marked("[-", step.rejected, "-]") + marked("{+", step.extra, "+}");
    }
    figure += '\n';
    so_far += step.accepted + step.extra;
  }
  return figure;
}

std::string_view figure_legend(bool colour) {
  return colour ? "Green: accepted drafts. Red: the rejected one. Blue: the target's own token."
                : "<accepted drafts> [-the rejected one-] {+the target's own token+}";
}

std::string steps_page(std::string_view prompt, const std::vector<FigureStep>& steps, std::string_view summary,
                       std::string_view made_by) {
  std::string list;
  std::string so_far;
  for (const FigureStep& step : steps) {
    list += fmt::format("<li><span class=\"before\">{}</span>{}{}{}</li>\n", escaped(so_far),
                        element("span", "accepted", step.accepted), element("del", "rejected", step.rejected),
                        element("ins", "target", step.extra));
    so_far += step.accepted + step.extra;
  }
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{made_by}">
<title>Speculative decoding step by step</title>
<style>
:root {{ color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --accepted: #006b4f; --rejected: #b3261e; --target: #00599c; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e8e8ec; --paper: #14171c; --accepted: #2fd0a0; --rejected: #ff8a80; --target: #7cc4f5; }}
}}
body {{ color: var(--ink); background: var(--paper); font: 1rem/1.6 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
ol {{ font-family: ui-monospace, monospace; padding-left: 2.5rem; }}
li {{ white-space: pre-wrap; overflow-wrap: anywhere; margin-bottom: .4rem; }}
.before {{ opacity: .7; }}
.accepted {{ color: var(--accepted); font-weight: 600; text-decoration: none; border-bottom: 2px solid; }}
.rejected {{ color: var(--rejected); text-decoration: line-through 2px; }}
.target {{ color: var(--target); font-weight: 600; text-decoration: none; border-bottom: 2px dotted; }}
</style>
</head>
<body>
<h1>Speculative decoding step by step</h1>
<p>{summary}. A line is one step: <span class="accepted">accepted drafts</span>, <del class="rejected">the rejected
one</del> and <ins class="target">the target's own token</ins>, behind the text so far
(Leviathan et al. 2023, Fig. 1).</p>
<p>Prompt: <q>{prompt}</q></p>
<ol aria-label="steps">
{list}</ol>
</body>
</html>
)",
                     fmt::arg("made_by", escaped(made_by)), fmt::arg("summary", escaped(summary)),
                     fmt::arg("prompt", escaped(prompt)), fmt::arg("list", list));
}

}  // namespace specdec::render
