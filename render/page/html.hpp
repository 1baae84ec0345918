#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "render/step_figure.hpp"
#include "render/table.hpp"

/// Pieces of HTML. Whatever a user or a file wrote goes through `escaped`.
namespace specdec::render {

/// A document within <script type="application/json">, which none of its strings can end.
std::string script_json(const nlohmann::ordered_json& document);

/// A paragraph each.
std::string paragraphs(const std::vector<std::string>& words);

/// Lines as they are.
std::string preformatted(std::string_view text);

/// A table with a caption, column headings, and rows whose first cells are their headings; empty if it has no rows. It
/// scrolls by itself where the page is narrower.
std::string html_of(const Table& table);

}  // namespace specdec::render
