#include "render/figures/drawing_facts.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "render/step_figure.hpp"
#include "render/version.hpp"

namespace specdec::render {
namespace {

[[noreturn]] void no_such_drawing(const char* what) {
  throw std::runtime_error(fmt::format("gnuplot's drawing is not as expected: {}", what));
}

std::string program() { return fmt::format("specdec {}", version()); }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// ------------------------------------------------------------------------------------------------------------- SVG

/// The three parts of "#rrggbb".
struct ColourParts {
  int red;
  int green;
  int blue;
};

ColourParts parts_of(std::string_view colour) {
  const auto part = [&](std::size_t at) {
    int value = 0;
    std::from_chars(colour.data() + at, colour.data() + at + 2, value, 16);
    return value;
  };
  return {part(1), part(3), part(5)};
}

/// Removes the titles that gnuplot gives to each series, which browsers would show at the pointer.
void remove_series_titles(std::string& svg, const std::string& prefix) {
  const std::string begin = fmt::format("<title>{}_plot_", prefix), end = "</title>";
  for (std::size_t at = 0; (at = svg.find(begin, at)) != std::string::npos;)
    svg.erase(at, svg.find(end, at) + end.size() - at);
}

// ------------------------------------------------------------------------------------------------------------- PNG

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

/// Length, type, content, and the CRC of type and content.
std::string png_chunk(std::string_view type, std::string_view content) {
  const std::string body = fmt::format("{}{}", type, content);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<std::uint32_t>(content.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

/// Text in UTF-8, not compressed, in no stated language.
std::string international_text(std::string_view keyword, std::string_view text) {
  std::string content(keyword);
  content.append(5, '\0');
  return png_chunk("iTXt", content + visible(text));
}

// ------------------------------------------------------------------------------------------------------------- PDF

/// A string of a PDF: UTF-16 with its mark, as hexadecimal digits.
std::string pdf_text(std::string_view text) {
  std::string hexadecimal = "<FEFF";
  const std::string legal = visible(text);
  for (std::size_t i = 0; i < legal.size();) {
    const auto first = static_cast<unsigned char>(legal[i]);
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    std::uint32_t point = more == 0 ? first : first & (0x3fU >> more);
    for (int k = 1; k <= more; ++k) point = point << 6 | (static_cast<unsigned char>(legal[i + k]) & 0x3fU);
    i += static_cast<std::size_t>(more) + 1;
    if (point < 0x10000) {
      hexadecimal += fmt::format("{:04X}", point);
    } else {
      hexadecimal += fmt::format("{:04X}{:04X}", 0xd800 + ((point - 0x10000) >> 10), 0xdc00 + (point & 0x3ff));
    }
  }
  return hexadecimal + '>';
}

/// The words after `key`, up to the end of the line.
std::string_view rest_of_line(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) no_such_drawing("a PDF without a plain trailer");
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

std::string svg_with_facts(std::string svg, const DrawingFacts& facts) {
  const std::size_t begin = svg.find("<title>"), end = svg.find("</desc>"), root = svg.find("<svg");
  if (root == std::string::npos || begin == std::string::npos || end == std::string::npos || end < begin)
    no_such_drawing("an SVG without title and description");
  const std::string prefix = svg.substr(begin + 7, svg.find('<', begin + 7) - begin - 7);
  svg.replace(begin, end + 7 - begin,
              fmt::format("<title id=\"{0}-title\">{1}</title>\n<desc id=\"{0}-desc\">{2}</desc>\n"
                          "<metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n  <dc:creator>{3}</dc:creator>\n"
                          "  <dc:source>{4}</dc:source>\n</metadata>",
                          facts.name, escaped(facts.title), escaped(facts.caption), program(), escaped(facts.made_by)));
  svg.insert(root + 4, fmt::format(" role=\"img\" aria-labelledby=\"{0}-title {0}-desc\"", facts.name));
  remove_series_titles(svg, prefix);
  for (const std::string_view quote : {"'", "\""}) {
    for (const std::string_view id : {"gpDot", "gpPt", "gpPat", "textbox", "greybox", "gnuplot_canvas"})
      replace_all(svg, fmt::format("id={}{}", quote, id), fmt::format("id={}{}-{}", quote, facts.name, id));
  }
  for (const std::string_view id : {"gpDot", "gpPt"})
    replace_all(svg, fmt::format("href='#{}", id), fmt::format("href='#{}-{}", facts.name, id));
  for (const std::string_view id : {"gpPat", "textbox", "greybox"})
    replace_all(svg, fmt::format("url(#{}", id), fmt::format("url(#{}-{}", facts.name, id));
  replace_all(svg, "font-family=\"sans-serif:Bold\"", "font-family=\"sans-serif\" font-weight=\"bold\"");
  return svg;
}

std::string svg_in_colour_of_page(std::string svg, std::string_view ink, std::string_view faded,
                                  std::string_view grid) {
  struct Shade {
    std::string_view colour;
    std::string_view opacity;
  };
  for (const Shade& shade : {Shade{ink, "1"}, Shade{faded, "0.65"}, Shade{grid, "0.16"}}) {
    const auto [red, green, blue] = parts_of(shade.colour);
    replace_all(svg, fmt::format("stroke='rgb({:3}, {:3}, {:3})'", red, green, blue),
                fmt::format("stroke='currentColor' stroke-opacity='{}'", shade.opacity));
    replace_all(svg, fmt::format("rgb({:3}, {:3}, {:3})", red, green, blue), "currentColor");
    replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), "currentColor");
  }
  replace_all(svg, "<g fill=\"none\" color=\"black\"", "<g fill=\"none\"");
  return svg;
}

std::string png_with_facts(std::string_view png, const DrawingFacts& facts, double pixels_per_inch) {
  // The signature of 8 bytes, then a header chunk of 13.
  constexpr std::size_t behind_header = 8 + 4 + 4 + 13 + 4;
  if (png.size() < behind_header || png.substr(12, 4) != "IHDR") no_such_drawing("a PNG without a header");
  const std::string per_metre = big_endian(static_cast<std::uint32_t>(std::lround(pixels_per_inch / 0.0254)));
  std::string software("Software");
  software += '\0';
  std::string chunks = png_chunk("tEXt", software + program());
  chunks += international_text("Title", facts.title) + international_text("Description", facts.caption) +
            international_text("Comment", facts.made_by);
  chunks += png_chunk("pHYs", per_metre + per_metre + '\1');
  // gnuplot may have written its own resolution, which must not occur twice.
  std::string_view rest = png.substr(behind_header);
  std::string kept;
  while (rest.size() >= 12) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(rest[i]);
    if (length > rest.size() - 12) no_such_drawing("a PNG whose chunks end behind it");
    if (rest.substr(4, 4) != "pHYs" && rest.substr(4, 4) != "tEXt") kept += rest.substr(0, length + 12);
    rest.remove_prefix(length + 12);
  }
  return fmt::format("{}{}{}", png.substr(0, behind_header), chunks, kept);
}

std::string pdf_with_facts(std::string pdf, const DrawingFacts& facts) {
  const std::size_t trailer_at = pdf.rfind("trailer");
  if (!pdf.starts_with("%PDF-") || trailer_at == std::string::npos) no_such_drawing("a PDF without a plain trailer");
  const std::string trailer = pdf.substr(trailer_at);
  const std::string size(rest_of_line(trailer, "/Size ")), root(rest_of_line(trailer, "/Root "));
  const std::size_t last_table = trailer.find("startxref");
  if (last_table == std::string::npos) no_such_drawing("a PDF without a plain trailer");
  const std::string previous(rest_of_line(trailer.substr(last_table), "startxref\n"));
  std::int64_t objects = 0;
  std::from_chars(size.data(), size.data() + size.size(), objects);
  if (pdf.back() != '\n') pdf += '\n';
  const std::size_t object_at = pdf.size();
  pdf += fmt::format("{} 0 obj\n<< /Title {}\n   /Subject {}\n   /Keywords {}\n   /Creator {}\n>>\nendobj\n", objects,
                     pdf_text(facts.title), pdf_text(facts.caption), pdf_text(facts.made_by), pdf_text(program()));
  const std::size_t table_at = pdf.size();
  pdf += fmt::format(
      "xref\n{} 1\n{:010} 00000 n \ntrailer\n<< /Size {}\n   /Root {}\n   /Info {} 0 R\n   /Prev {}\n>>\n"
      "startxref\n{}\n%%EOF\n",
      objects, object_at, objects + 1, root, objects, previous, table_at);
  return pdf;
}

}  // namespace specdec::render
