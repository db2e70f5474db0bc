#include "cupel/load/stream_event.h"

#include "cupel/eval/protocol_parts.h"

namespace cupel {
namespace {

using nlohmann::json;

std::size_t read_index(const json& object) {
  const json* index = find_member(object, "index");
  return index == nullptr ? 0 : index->get<std::size_t>();
}

bool has_text(const json& object, const char* key) {
  const json* text = find_member(object, key);
  return text != nullptr && !text->get_ref<const std::string&>().empty();
}

StreamEvent read_generate(const json& part) {
  const json& meta = part.at("meta_info");
  StreamEvent event;
  event.sequence = read_index(part);
  TokenUsage usage = read_usage(meta);
  if (const json* cached = find_member(meta, "cached_tokens")) {
    usage.cached_prompt = cached->get<int>();
  }
  event.tokens = usage.completion;
  event.usage = usage;
  event.finished = find_member(meta, "finish_reason") != nullptr;
  return event;
}

StreamEvent read_choice(Api api, const json& choice) {
  StreamEvent event;
  event.sequence = read_index(choice);
  if (api == Api::kChat) {
    const json& delta = choice.at("delta");
    // Servers differ in the name of the thoughts.
    for (const char* key : {"content", "reasoning_content", "reasoning"}) {
      event.shows_text = event.shows_text || has_text(delta, key);
    }
  } else {
    event.shows_text = has_text(choice, "text");
  }
  event.finished = find_member(choice, "finish_reason") != nullptr;
  return event;
}

}  // namespace

std::vector<StreamEvent> read_stream_events(Api api, const std::string& data,
                                            const PartSource& source) {
  std::vector<StreamEvent> events;
  read_object(api, data, source, [&](const json& part) {
    if (api == Api::kGenerate) {
      events.push_back(read_generate(part));
      return;
    }
    for (const json& choice : part.at("choices")) events.push_back(read_choice(api, choice));
    if (const json* usage = find_member(part, "usage")) {
      StreamEvent whole;
      whole.usage = read_usage(*usage);
      events.push_back(whole);
    }
  });
  return events;
}

}  // namespace cupel
