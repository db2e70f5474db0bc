// Compiled forms are shared by all who ask for them, and only by those.
#include "cupel/server/form_cache.h"

#include <set>
#include <thread>
#include <vector>

#include "server/served.h"
#include <gtest/gtest.h>

#include "cupel/base/error.h"

namespace cupel::test {
namespace {

const Tokenizer& tokenizer() {
  return expecting_engine().tokenizer();
}

ChatJson of_type(const std::string& type) {
  return {{"type", type}};
}

ChatTool tool(const std::string& name, const std::string& type, const std::string& description) {
  return {.name = name,
          .function = {{"name", name},
                       {"description", description},
                       {"parameters", {{"properties", {{"x", of_type(type)}}}}}}};
}

TEST(FormCache, OneOfEachForm) {
  FormCache cache(tokenizer());
  const auto one = cache.schema(of_type("integer"), "a");
  EXPECT_EQ(cache.schema(of_type("integer"), "a"), one);
  EXPECT_NE(cache.schema(of_type("number"), "a"), one);

  std::vector<OutputForm> forms(7);
  forms[0].schema = of_type("integer");
  forms[1].any_object = true;
  forms[2] = forms[1];
  forms[2].thinking = true;
  forms[3].tools = {tool("f", "integer", "")};
  forms[4].tools = {tool("g", "integer", "")};
  forms[5].tools = {tool("f", "boolean", "")};
  forms[6] = forms[3];
  forms[6].parallel_calls = false;
  std::set<FormCache::Constraint> different;
  for (const OutputForm& form : forms) different.insert(cache.output(form));
  EXPECT_EQ(different.size(), forms.size());
  for (const OutputForm& form : forms) EXPECT_TRUE(different.count(cache.output(form)));
  OutputForm described = forms[3];
  described.tools = {tool("f", "integer", "says what f does")};
  EXPECT_EQ(cache.output(described), cache.output(forms[3]));
}

TEST(FormCache, ForgetsTheOneNotAskedForTheLongest) {
  FormCache cache(tokenizer(), 2);
  const auto integer = cache.schema(of_type("integer"), "");
  const auto number = cache.schema(of_type("number"), "");
  EXPECT_EQ(cache.schema(of_type("integer"), ""), integer);
  cache.schema(of_type("boolean"), "");
  EXPECT_EQ(cache.schema(of_type("integer"), ""), integer);
  EXPECT_NE(cache.schema(of_type("number"), ""), number);
}

TEST(FormCache, ErrorsAreNotKept) {
  FormCache cache(tokenizer(), 1);
  const auto kept = cache.schema(of_type("integer"), "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(cache.schema({{"not", ChatJson::object()}}, "place"), InputError);
  }
  EXPECT_NO_THROW(cache.schema(of_type("integer"), ""));
}

TEST(FormCache, ManyAtOnceCompileOnce) {
  FormCache cache(tokenizer());
  constexpr std::size_t kThreads = 16;
  std::vector<FormCache::Constraint> found(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] { found[i] = cache.schema(of_type("object"), ""); });
    }
  }
  EXPECT_EQ(std::set(found.begin(), found.end()).size(), 1U);
  EXPECT_NE(found[0], nullptr);
}

}  // namespace
}  // namespace cupel::test
