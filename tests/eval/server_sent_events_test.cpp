#include "cupel/eval/server_sent_events.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace cupel {
namespace {

std::vector<std::string> parse(const std::vector<std::string>& pieces) {
  std::vector<std::string> events;
  ServerSentEvents parser([&](const std::string& data) { events.push_back(data); });
  for (const std::string& piece : pieces) parser.feed(piece);
  return events;
}

TEST(ServerSentEvents, OnlyDataOfWholeEvents) {
  EXPECT_THAT(parse({": hello\n\nevent: x\nid: 1\n\ndata: a\n\ndata:b\r\n\r\ndata:  c\r\rdata\n\n"
                     "database: no\n\ndata: 1\ndata: 2\n\n\n\ndata: unfinished\n"}),
              testing::ElementsAre("a", "b", " c", "", "1\n2"));
}

RC_GTEST_PROP(ServerSentEvents, AnyCutGivesTheSameEvents, ()) {
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "data: ", "data:", "a", "é", "\n", "\n\n", "\r\n", "\r\n\r\n", "\r", ":", "event: e", " "));
  std::string text;
  for (const std::string& word : words) text += word;
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 6);
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  RC_ASSERT(parse(pieces) == parse({text}));
}

}  // namespace
}  // namespace cupel
