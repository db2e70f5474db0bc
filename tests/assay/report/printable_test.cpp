#include "cupel/assay/report/printable.h"

#include <gtest/gtest.h>
#include <pugixml.hpp>
#include <rapidcheck/gtest.h>

#include "cupel/text/utf8.h"

namespace cupel {
namespace {

TEST(Printable, ReplacesWhatCannotBeShown) {
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable(std::string_view("\0\x1b\r\x1f\x7f", 5)), "␀␛␍␟␡");
  EXPECT_EQ(printable("a\xff\xc3"), "a\uFFFD\uFFFD");
  EXPECT_EQ(printable("\u0085\u202E\u2066\u061C"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("\xef\xbf\xbe"), "\uFFFD");
  EXPECT_EQ(printable("é中🧪"), "é中🧪");
}

// Whatever bytes: valid, a fixed point, and the same after a round trip through an XML parser.
RC_GTEST_PROP(Printable, AnyBytesAreFitForXml, (const std::vector<std::uint8_t>& bytes)) {
  const std::string shown = printable(std::string(bytes.begin(), bytes.end()));
  RC_ASSERT(valid_utf8_prefix(shown).size() == shown.size());
  RC_ASSERT(printable(shown) == shown);
  pugi::xml_document out;
  out.append_child("t").append_child(pugi::node_pcdata).set_value(shown.c_str());
  std::ostringstream stream;
  out.save(stream, "", pugi::format_raw);
  pugi::xml_document in;
  RC_ASSERT(in.load_string(stream.str().c_str(), pugi::parse_default | pugi::parse_ws_pcdata));
  RC_ASSERT(std::string(in.child("t").text().get()) == shown);
}

TEST(FirstCharacter, KeepsMarksWithTheirLetter) {
  EXPECT_EQ(first_character(""), "");
  EXPECT_EQ(first_character("ab"), "a");
  EXPECT_EQ(first_character("e\u0301\u0302x"), "e\u0301\u0302");
  EXPECT_EQ(first_character("中a"), "中");
}

}  // namespace
}  // namespace cupel
