// SPDX-License-Identifier: Apache-2.0
#include "calibrate/import/xml.hpp"

#include <gmock/gmock.h>

namespace weft {
namespace {

using testing::HasSubstr;

TEST(Xml, ElementsKeepTheirPlacesAttributesAndOrder) {
  Diagnostics out;
  const auto document =
      read_xml("<!-- a --><r>\n  <x k=\"1\" k2=\"\"/>text<y><z/></y>\n</r>\n", "f.xml", out);
  ASSERT_TRUE(document.has_value()) << out.text();
  ASSERT_EQ(document->elements.size(), 4U);
  const XmlElement& x = document->elements[document->elements[0].children[0]];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.place.line, 2U);
  EXPECT_EQ(x.place.column, 3U);
  EXPECT_EQ(x.attribute("k"), "1");
  EXPECT_TRUE(x.has("k2"));
  EXPECT_FALSE(x.has("k3"));
  EXPECT_EQ(x.attribute("k3"), "");
  EXPECT_EQ(document->comments, 1U);
  EXPECT_EQ(document->texts, 1U);
}

TEST(Xml, WhatIsNoDocumentIsReportedWithItsPlace) {
  for (const char* text : {"", "hello", "<a>", "<a></b>", "<a/><b/>", "<a b=c/>", "<a b=\"1/>"}) {
    Diagnostics out;
    EXPECT_FALSE(read_xml(text, "f.xml", out).has_value()) << text;
    EXPECT_THAT(out.text(), HasSubstr("f.xml:1:")) << text;
  }
}

TEST(Xml, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "<a>";
  for (int i = 0; i < 100'000; ++i) text += "</a>";
  Diagnostics out;
  EXPECT_FALSE(read_xml(text, "f.xml", out).has_value());
  EXPECT_THAT(out.text(), HasSubstr("nested too deeply"));
}

TEST(Xml, AnIntegerIsTheWholeText) {
  EXPECT_EQ(parse_integer("-12"), -12);
  for (const char* text : {"", "1.5", "1 ", "x", "99999999999999999999"})
    EXPECT_FALSE(parse_integer(text)) << text;
}

}  // namespace
}  // namespace weft
