#include "cupel/eval/fetch.h"

#include "support/fake_server.h"
#include "support/temporary_folder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cupel/base/error.h"
#include "cupel/base/file.h"
#include "cupel/base/sha256.h"

namespace cupel {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;
using ::testing::HasSubstr;

// Examples of FIPS 180-2.
TEST(Sha256, KnownValues) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

std::string message_of(const std::string& url, const std::filesystem::path& path) {
  try {
    fetch_file(url, kGsm8kTest.sha256, path);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "no error";
}

TEST(Fetch, WritesTheFileOnlyIfItIsTheOne) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "test.jsonl";
  const std::string bundled =
      read_file(std::filesystem::path(CUPEL_SOURCE_DIR) / "data/gsm8k/test.jsonl");
  FakeReply reply;
  FakeServer server([](const FakeRequest&) { return FakeReply{.status = 405}; },
                    [&](const FakeRequest&) { return reply; });
  const std::string url = server.url() + "/data/test.jsonl";

  reply = {.body = bundled + "\n"};
  EXPECT_THAT(message_of(url, path),
              AllOf(HasSubstr("4 "), HasSubstr("SHA-256 is 3730d312"), HasSubstr("{\"question\"")));
  reply = {.body = "<html>", .content_type = "text/html"};
  EXPECT_THAT(message_of(url, path), HasSubstr("<html>"));
  reply = {.status = 404, .body = "none"};
  EXPECT_THAT(message_of(url, path), AllOf(HasSubstr("4 "), HasSubstr("status 404")));
  reply = {.status = 302, .headers = {{"Location", "http://elsewhere/"}}};
  EXPECT_THAT(message_of(url, path), HasSubstr("sent on to http://elsewhere/"));
  reply = {.status = 503};
  EXPECT_THAT(message_of(url, path), HasSubstr("3 "));
  reply = {.pieces = {bundled.substr(0, 1000)}, .cut = true};
  EXPECT_THAT(message_of(url, path), AllOf(HasSubstr("3 "), HasSubstr("cut")));
  reply = {.reset = true};
  EXPECT_THAT(message_of(url, path), HasSubstr("3 "));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  reply = {.body = bundled};
  EXPECT_EQ(fetch_file(url, kGsm8kTest.sha256, path), bundled.size());
  EXPECT_EQ(read_file(path), bundled);
  EXPECT_EQ(server.requests().back().path, "/data/test.jsonl");
  server.stop();
  EXPECT_THAT(message_of(url, path), AllOf(HasSubstr("3 "), HasSubstr("no connection")));
  EXPECT_EQ(read_file(path), bundled);
}

}  // namespace
}  // namespace cupel
