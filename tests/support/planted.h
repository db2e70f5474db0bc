// A planted nondeterministic endpoint: some items are near-tied and flip at a given rate each time
// they are asked, some are wrong for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cupel/eval/target.h"
#include "cupel/eval/task.h"

namespace cupel::test {

struct Planted {
  int items = 1319;
  int unstable = 0;   // from item 0 on
  double rate = 0.5;  // at which they are wrong
  int dead = 0;       // from the last item on down
  std::uint64_t seed = 0;

  // u = 4 * sum p(1 - p).
  double effective_unstable() const { return 4 * unstable * rate * (1 - rate); }
};

// Item i asks "i + 1".
inline Task planted_task(int items) {
  Task task;
  task.name = "planted";
  task.bos = false;
  for (int i = 0; i < items; ++i) {
    const std::string gold = std::to_string(i + 1);
    task.items.push_back({i, std::to_string(i) + " + 1", "#### " + gold, i + 1, i + 1});
  }
  return task;
}

// Safe from many threads.
class PlantedAnswers {
 public:
  explicit PlantedAnswers(const Planted& planted)
      : planted_(planted), asked_(static_cast<std::size_t>(planted.items)) {}

  // Right or wrong, at the item's next turn.
  bool right(int item) {
    if (item >= planted_.items - planted_.dead) return false;
    if (item >= planted_.unstable) return true;
    const auto turn =
        static_cast<std::uint64_t>(asked_[static_cast<std::size_t>(item)].fetch_add(1));
    const std::uint64_t draw =
        mix(mix(planted_.seed * 2 + 1) ^ mix((static_cast<std::uint64_t>(item) << 32U) + turn));
    return static_cast<double>(draw >> 11U) * 0x1p-53 >= planted_.rate;
  }

  // The answer to a prompt that ends in item i's question; to another, nothing.
  std::string answer(const std::string& prompt) {
    if (prompt.find("Question: ") == std::string::npos) return {};
    const int item = std::stoi(prompt.substr(prompt.rfind("Question: ") + 10));
    return right(item) ? " so\n#### " + std::to_string(item + 1) : " #### 999999";
  }

 private:
  // The finaliser of SplitMix64.
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27U) * 0x94d049bb133111ebULL;
    return x ^ x >> 31U;
  }

  Planted planted_;
  std::vector<std::atomic<int>> asked_;
};

class PlantedTarget : public Target {
 public:
  explicit PlantedTarget(const Planted& planted) : answers_(planted) {}

  void complete(std::span<const CompletionRequest> requests, int,
                const std::function<void(std::size_t, const Completion&)>& done) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Completion c;
      c.text = answers_.answer(requests[i].prompt);
      c.stop_reason = StopReason::kEos;
      done(i, c);
    }
  }
  std::string model_fingerprint() const override { return "planted"; }

 private:
  PlantedAnswers answers_;
};

}  // namespace cupel::test
