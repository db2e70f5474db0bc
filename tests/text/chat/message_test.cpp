#include "cupel/text/chat/message.h"

#include <gmock/gmock.h>

namespace cupel {
namespace {

TEST(ChatMessage, NamesGoBothWays) {
  for (const char* name : {"system", "developer", "user", "assistant", "tool", "latest_reminder"}) {
    const auto role = role_from_name(name);
    ASSERT_TRUE(role) << name;
    EXPECT_EQ(role_name(*role), name);
  }
  for (const char* name : {"action", "query", "authority", "domain", "title", "read_url"}) {
    const auto task = task_from_name(name);
    ASSERT_TRUE(task) << name;
    EXPECT_EQ(task_name(*task), name);
  }
  EXPECT_FALSE(role_from_name("User"));
  EXPECT_FALSE(task_from_name(""));
}

TEST(ChatMessage, WhatARequestStatesJoinsTheSystemMessage) {
  const ChatTool tool{.name = "f", .function = {{"name", "f"}}};
  std::vector<ChatMessage> messages(1);
  messages[0].content = "Hi";
  attach_tools(messages, {});
  EXPECT_EQ(messages.size(), 1u);
  attach_tools(messages, {tool});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].role, ChatRole::kSystem);
  EXPECT_EQ(messages[0].content, "");
  EXPECT_EQ(messages[0].tools, std::vector<ChatTool>{tool});
  attach_response_format(messages, {{"type", "object"}});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].response_format, (ChatJson{{"type", "object"}}));
}

}  // namespace
}  // namespace cupel
