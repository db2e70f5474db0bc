#include "cupel/engine/engine_thread.h"

#include <future>

#include "engine/engine_support.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

class EngineThreadTest : public testing::Test {
 protected:
  GenerationRequest request(std::size_t begin, int tokens) {
    GenerationRequest r;
    r.prompt_ids = test::text_ids(begin, 30);
    r.max_new_tokens = tokens;
    r.ignore_eos = true;
    return r;
  }
  static RequestCallbacks into(std::promise<Generation>& promise) {
    RequestCallbacks callbacks;
    callbacks.on_done = [&](const Generation& g) { promise.set_value(g); };
    return callbacks;
  }

  Engine engine_{test::engine_options(BackendKind::kUnified)};
};

TEST_F(EngineThreadTest, AnswersAsTheEngineDoes) {
  const Generation expected = test::generate_alone(engine_, request(4, 9));
  EngineThread service(engine_);
  std::promise<Generation> a, b;
  service.submit(request(4, 9), into(a));
  service.submit(request(4, 9), into(b));
  test::expect_same(a.get_future().get(), expected);
  test::expect_same(b.get_future().get(), expected);
}

TEST_F(EngineThreadTest, CancelsAndRefuses) {
  EngineThread service(engine_);
  std::promise<Generation> ended, started;
  RequestCallbacks callbacks = into(ended);
  callbacks.on_token = [&, told = false](const TokenEvent&) mutable {
    if (!told) started.set_value({});
    told = true;
  };
  const RequestId id = service.submit(request(0, 3000), callbacks);
  started.get_future().get();
  service.cancel(id);
  EXPECT_EQ(ended.get_future().get().finish, FinishReason::kCancelled);
  service.cancel(id);   // ended already
  service.cancel(999);  // never was
  EXPECT_THROW(service.submit({}), InputError);
}

TEST_F(EngineThreadTest, StopFinishesOrCancels) {
  for (const bool finish : {true, false}) {
    EngineThread service(engine_);
    std::promise<Generation> ended;
    service.submit(request(0, finish ? 40 : 3000), into(ended));
    service.stop(finish);
    const Generation g = ended.get_future().get();
    EXPECT_EQ(g.finish, finish ? FinishReason::kLength : FinishReason::kCancelled);
    EXPECT_THROW(service.submit(request(0, 1)), InfrastructureError);
  }
}

}  // namespace
}  // namespace cupel
