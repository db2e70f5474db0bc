#include "cupel/server/form_cache.h"

#include <algorithm>
#include <exception>

namespace cupel {
namespace {

// What a form is made of, and nothing else: a tool's description changes no mask.
std::string key_of(const OutputForm& form) {
  ChatJson key = {{"thinking", form.thinking},
                  {"object", form.any_object},
                  {"parallel", form.parallel_calls},
                  {"tools", ChatJson::array()}};
  if (form.schema) key["schema"] = *form.schema;
  for (const ChatTool& tool : form.tools) {
    const auto parameters = tool.function.find("parameters");
    key["tools"].push_back(
        {tool.name, parameters == tool.function.end() ? ChatJson() : *parameters});
  }
  return key.dump();
}

}  // namespace

FormCache::FormCache(const Tokenizer& tokenizer, std::size_t capacity)
    : tokenizer_(tokenizer),
      vocabulary_(std::make_shared<const ConstraintVocabulary>(tokenizer)),
      capacity_(std::max<std::size_t>(capacity, 1)) {}

FormCache::Constraint FormCache::output(const OutputForm& form) {
  return find(key_of(form), [&] { return make_output_form(form, tokenizer_, vocabulary_); });
}

FormCache::Constraint FormCache::schema(const ChatJson& schema, std::string_view where) {
  return find(ChatJson({where, schema}).dump(),
              [&] { return make_schema_form(schema, vocabulary_, where); });
}

FormCache::Constraint FormCache::find(const std::string& key,
                                      const std::function<Constraint()>& compile) {
  std::promise<Constraint> promise;
  {
    std::unique_lock lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.key == key; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      const std::shared_future<Constraint> form = found->form;
      lock.unlock();
      return form.get();
    }
    entries_.push_front({key, promise.get_future().share()});
    if (entries_.size() > capacity_) entries_.pop_back();
  }
  try {
    Constraint form = compile();
    promise.set_value(form);
    return form;
  } catch (...) {
    forget(key);
    promise.set_exception(std::current_exception());
    throw;
  }
}

void FormCache::forget(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.key == key; });
}

}  // namespace cupel
