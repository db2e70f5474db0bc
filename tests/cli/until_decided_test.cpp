// cupel assay --until-decided, from the command line to the ledger of its looks.
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>

#include "cli/endpoint_command.h"

#include "cupel/base/file.h"
#include "cupel/base/hash.h"

namespace cupel {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the fixture and its servers
using testing::HasSubstr;
using testing::Not;

// Answers right but for the first `dead` items, and every `coin`-th of the others by a coin that
// falls anew each time the item is asked.
class Adder {
 public:
  Adder(int dead, int coin, std::string name) : dead_(dead), coin_(coin), name_(std::move(name)) {}

  FakeReply operator()(const FakeRequest& request) {
    if (request.json.at("max_tokens") == 1) return answer_right(request);
    const int answer = right_answer(request.json.at("prompt"));
    const int item = answer - 1;
    bool wrong = item < dead_;
    if (!wrong && coin_ > 0 && item % coin_ == 0) {
      const std::lock_guard lock(mutex_);
      const std::string flip =
          hash_hex(name_ + std::to_string(item) + "/" + std::to_string(asked_[item]++));
      wrong = flip.back() % 2 == 0;
    }
    return wrong ? answer_wrong(request) : answer_right(request);
  }

 private:
  int dead_, coin_;
  std::string name_;
  std::mutex mutex_;
  std::map<int, int> asked_;
};

class UntilDecided : public EndpointCommand {
 protected:
  CommandResult decide(const std::vector<std::pair<std::string, const FakeServer*>>& cells,
                       const Words& more = {"--until-decided"}) {
    Words words = {"--reference", cells.front().first, "--margin", margin_};
    for (const auto& [name, server] : cells) {
      words.insert(words.end(), {"--endpoint", name + "=" + server->url()});
    }
    words.insert(words.end(), more.begin(), more.end());
    return assay(words);
  }
  std::string margin_ = "2";

  std::string file(const std::string& cell) const {
    return folder_.path() / "cells" / ("sums." + cell + ".jsonl");
  }
  int repeats(const std::string& cell) const {
    int most = 0;
    for (const Record& r : read_records(file(cell))) most = std::max(most, r.repeat + 1);
    return most;
  }
};

// One question of one token, then the items.
std::size_t answers(const FakeServer& server) {
  return server.posts().size() - 1;
}

TEST_F(UntilDecided, ACellThatIsDecidedIsNotAskedAgain) {
  constexpr int kItems = 200;
  margin_ = "4";
  write_task(kItems);
  Adder a(0, 4, "a"), b(0, 4, "b"), c(30, 4, "c");
  FakeServer good(std::ref(a)), same(std::ref(b)), bad(std::ref(c));
  const CommandResult result = decide({{"good", &good}, {"same", &same}, {"bad", &bad}});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_EQ(repeats("bad"), 1);
  EXPECT_GE(repeats("same"), 2);  // 50 coins: one pass cannot tell
  EXPECT_EQ(repeats("good"), repeats("same"));
  EXPECT_EQ(answers(bad), kItems);
  EXPECT_EQ(answers(same), kItems * static_cast<std::size_t>(repeats("same")));
  EXPECT_THAT(result.out, HasSubstr("repeats until decided"));
  EXPECT_THAT(result.out, HasSubstr("looks fixed at 1, 2, 4, 8 repeats"));
  EXPECT_THAT(result.out, HasSubstr("Bounds at 1.25 % each side."));
  EXPECT_THAT(result.out, HasSubstr("Decided after 1 and 1 repeats."));
  // The ledger holds the looks that were taken, each at its part of the 5 %.
  const auto ledger = nlohmann::json::parse(read_file(file("same") + ".looks.json"));
  const auto& taken = ledger.at("studies").at(0).at("taken");
  EXPECT_EQ(taken.size(), std::log2(repeats("same")) + 1);
  EXPECT_EQ(taken[1].at("reference"), 2);
  EXPECT_NEAR(taken[1].at("alpha").get<double>(), 0.0125, 1e-12);
}

TEST_F(UntilDecided, IdenticalPassesAreNoEvidence) {
  write_task(40);  // too few for a margin of 2, whatever is asked
  FakeServer a(answer_right), b(answer_right);
  const CommandResult result = decide({{"a", &a}, {"b", &b}});
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_EQ(repeats("b"), 2);
  EXPECT_THAT(result.out, HasSubstr("Repeats cannot decide: every pass is the same."));
}

TEST_F(UntilDecided, GoesOnWhereALostServerEndedItAndAsksNothingTwice) {
  constexpr int kItems = 120;
  write_task(kItems);
  Adder a(0, 4, "a"), b(0, 4, "b");
  FakeServer good(std::ref(a));
  std::atomic<int> left = kItems * 3 + 50;  // in the middle of the third look
  FakeServer other([&](const FakeRequest& request) {
    return left-- > 0 ? b(request) : FakeReply{.reset = true};
  });
  const Words words = {"--until-decided", "--retries", "0", "--concurrency", "1"};
  const CommandResult lost = decide({{"good", &good}, {"other", &other}}, words);
  EXPECT_EQ(lost.exit_code, 3) << lost.out << lost.err;
  const std::string begun = read_file(file("other"));
  left = 1 << 20;
  Words more = words;
  more.emplace_back("--resume");
  const CommandResult resumed = decide({{"good", &good}, {"other", &other}}, more);
  EXPECT_LE(resumed.exit_code, 2) << resumed.err;
  EXPECT_GE(repeats("other"), 4);
  EXPECT_EQ(read_file(file("other")).substr(0, begun.size()), begun);
  std::size_t asked = 0;
  for (const FakeRequest& post : other.posts()) asked += post.json.at("max_tokens") == 1 ? 0 : 1;
  // The one that got no answer was asked again.
  EXPECT_EQ(asked, kItems * static_cast<std::size_t>(repeats("other")) + 1);

  // Once more: the looks are taken again from the records, at what they were charged.
  const CommandResult again = decide({{"good", &good}, {"other", &other}}, more);
  EXPECT_EQ(again.exit_code, resumed.exit_code);
  const auto verdicts = [](const std::string& out) {
    return out.substr(out.find("Compared"), out.find("\nRecords") - out.find("Compared"));
  };
  EXPECT_EQ(verdicts(again.out), verdicts(resumed.out));
}

TEST_F(UntilDecided, RecordsExtendedByHandAreCharged) {
  write_task(200);
  Adder a(0, 4, "a"), b(0, 4, "b");
  FakeServer good(std::ref(a)), other(std::ref(b));
  const std::vector<std::pair<std::string, const FakeServer*>> cells = {{"good", &good},
                                                                        {"other", &other}};
  const CommandResult once = decide(cells, {"--repeats", "1"});
  EXPECT_EQ(once.exit_code, 2) << once.err;
  EXPECT_THAT(once.out, Not(HasSubstr("each side")));
  const CommandResult more = decide(cells, {"--repeats", "2", "--resume"});
  EXPECT_EQ(more.exit_code, 2) << more.err;
  EXPECT_THAT(more.out, HasSubstr("The 5 % of this study are spent by the looks already taken"));
  // So does a study that goes on under a plan: there is none to go on with.
  const CommandResult planned = decide(cells, {"--until-decided", "--resume"});
  EXPECT_EQ(planned.exit_code, 2);
  EXPECT_THAT(planned.err, HasSubstr("looks after 1 repeats, as fixed at the first"));
  // Another margin is another study, of which this one knows too much.
  margin_ = "3";
  expect_refused(decide(cells, {"--resume", "--repeats", "2"}), {"margin 2", "found 3"});
  margin_ = "2";
  // Fresh records begin anew.
  const CommandResult fresh = decide(cells, {"--until-decided"});
  EXPECT_THAT(fresh.out, HasSubstr("Bounds at 1.25 % each side."));
}

TEST_F(UntilDecided, AnytimeBoundsKeepNoLedger) {
  write_task(100);
  FakeServer good(answer_right), bad(answer_wrong);
  const CommandResult result =
      decide({{"good", &good}, {"bad", &bad}}, {"--until-decided", "--bound", "anytime"});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("Evidence after 1 passes"));
  EXPECT_FALSE(std::filesystem::exists(file("bad") + ".looks.json"));
}

TEST_F(UntilDecided, SenselessPlansAreRefusedBeforeAnythingIsAsked) {
  write_task(2);
  FakeServer server(answer_right), second(answer_right);
  const auto refused = [&](const Words& words, const Words& parts) {
    expect_refused(decide({{"a", &server}, {"b", &second}}, words), parts);
  };
  refused({"--until-decided", "--looks", "4,2"}, {"--looks", "4,2"});
  refused({"--until-decided", "--looks", "0"}, {"--looks"});
  refused({"--until-decided", "--bound", "wald"}, {"--bound", "wald"});
  refused({"--until-decided", "--repeats", "2"}, {"--until-decided", "--repeats"});
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace cupel
