// Compiled forms of outputs, kept: what many requests ask for is compiled once, and the masks that
// one request needed serve the next.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cupel/server/output_form.h"
#include "cupel/text/constraint/vocabulary.h"
#include "cupel/text/token_constraint.h"
#include "cupel/text/tokenizer.h"

namespace cupel {

// May be used by many threads; the tokenizer must outlive it. A form that several ask for at once
// is compiled by the first while the others wait. Of more than `capacity` forms the one that was
// not asked for the longest is forgotten; requests that follow it keep it alive.
class FormCache {
 public:
  using Constraint = std::shared_ptr<const TokenConstraint>;
  // A form holds at most 64 MiB of masks.
  static constexpr std::size_t kUsualCapacity = 16;

  explicit FormCache(const Tokenizer& tokenizer, std::size_t capacity = kUsualCapacity);

  // As make_output_form() and make_schema_form(); what they throw is not kept.
  Constraint output(const OutputForm& form);
  Constraint schema(const ChatJson& schema, std::string_view where);

 private:
  struct Entry {
    std::string key;
    std::shared_future<Constraint> form;
  };

  Constraint find(const std::string& key, const std::function<Constraint()>& compile);
  void forget(const std::string& key);

  const Tokenizer& tokenizer_;
  std::shared_ptr<const ConstraintVocabulary> vocabulary_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // the one asked for last comes first
};

}  // namespace cupel
