#include "cupel/server/server.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cupel/base/file.h"
#include "cupel/server/chat.h"
#include "cupel/server/completions.h"
#include "cupel/server/context.h"
#include "cupel/server/http_error.h"
#include "cupel/server/http_server.h"
#include "cupel/server/identity.h"
#include "cupel/server/native_generate.h"
#include "cupel/server/page.h"
#include "cupel/server/reply.h"
#include "cupel/server/token_text.h"

namespace cupel {

namespace {

// Without an example there is what the checkpoint brings.
PromptProse load_prose(const ServerOptions& options) {
  if (std::filesystem::exists(options.prose_example)) {
    return load_prompt_prose(options.model, options.prose_example);
  }
  const std::filesystem::path encoder = options.model / "encoding" / "encoding_dsv4.py";
  if (!std::filesystem::exists(encoder)) return {};
  return prose_from_encoder(read_file(encoder), encoder.string());
}

}  // namespace

class Server::Impl {
 public:
  Impl(Engine& engine, ServerOptions options)
      : options_(std::move(options)),
        metrics_(options_.names.front()),
        capacity_(cache_capacity(engine)),
        encoder_(options_.release.value_or(chat_release(engine.config())), load_prose(options_)),
        forms_(engine.tokenizer()),
        thread_(engine),
        context_{.options = options_,
                 .engine = engine,
                 .thread = thread_,
                 .metrics = metrics_,
                 .watcher = watcher_,
                 .encoder = encoder_,
                 .forms = forms_,
                 .defaults = load_sampling_defaults(options_.model),
                 .longest = std::min(engine.config().max_position_embeddings, capacity_),
                 .token_capacity = capacity_},
        http_(options_, metrics_) {
    add_routes();
    http_.start();
  }

  ~Impl() { stop(std::chrono::milliseconds(0)); }

  void stop(std::chrono::milliseconds grace) {
    if (!http_.drain(grace)) {
      // What still runs ends as cancelled, and is answered by an error.
      thread_.stop(false);
      if (!http_.drain(kAnswering)) spdlog::warn("server: connections are broken off");
    }
    http_.stop();
    thread_.stop(true);
  }

  const ServerOptions& options() const { return options_; }
  int port() const { return http_.port(); }

 private:
  static constexpr std::chrono::milliseconds kAnswering{2000};

  using Json = nlohmann::json;

  void add_get(std::initializer_list<const char*> paths, const std::function<Json()>& answer) {
    for (const char* path : paths) {
      http_.route("GET", path,
                  [answer](Exchange& exchange) { exchange.reply(200, dump(answer())); });
    }
  }

  void add_routes() {
    http_.route("GET", "/", show_page, true);
    http_.route(
        "GET", "/health", [](Exchange& e) { e.reply(200, "", "text/plain"); }, true);
    http_.route("GET", "/health_generate", [this](Exchange& e) { generate_one(e); });
    http_.route("GET", "/metrics", [this](Exchange& e) {
      e.reply(200, metrics_.text(thread_.stats(), http_.connections()),
              "text/plain; version=0.0.4; charset=utf-8");
    });
    for (const char* method : {"GET", "POST"}) {
      http_.route(method, "/flush_cache", [this](Exchange& e) {
        thread_.flush_prefixes();
        e.reply(200, "Cache flushed.\n", "text/plain");
      });
    }
    add_get({"/v1/models"}, [this] { return models_json(context_); });
    for (const std::string& name : options_.names) {
      const std::string path = "/v1/models/" + name;
      add_get({path.c_str()}, [this, name] { return model_card(context_, name); });
    }
    add_get({"/get_model_info", "/model_info"}, [this] { return model_info_json(context_); });
    add_get({"/server_info", "/get_server_info"}, [this] { return server_info_json(context_); });
    http_.route("POST", "/generate", [this](Exchange& e) { handle_generate(context_, e); });
    http_.route("POST", "/v1/chat/completions", [this](Exchange& e) { handle_chat(context_, e); });
    http_.route("POST", "/v1/completions",
                [this](Exchange& e) { handle_completions(context_, e); });
  }

  static void show_page(Exchange& exchange) {
    // Nothing from elsewhere, and nobody frames it.
    exchange.header("Content-Security-Policy",
                    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                    "form-action 'none'");
    exchange.reply(200, std::string(page_html()), "text/html; charset=utf-8");
  }

  // A token, by the way that all requests go.
  void generate_one(Exchange& exchange) const {
    GenerationRequest request;
    request.prompt_ids = {context_.engine.config().bos_token_id};
    request.max_new_tokens = 1;
    generate_all(context_, exchange, {request});
    exchange.reply(200, "", "text/plain");
  }

  // In the order of use: the engine's thread ends after the connections, the watcher last.
  ServerOptions options_;
  Metrics metrics_;
  std::int64_t capacity_;
  PromptEncoder encoder_;
  FormCache forms_;
  HangupWatcher watcher_;
  EngineThread thread_;
  ServerContext context_;
  HttpServer http_;
};

Server::Server(Engine& engine, ServerOptions options)
    : impl_(std::make_unique<Impl>(engine, std::move(options))) {}

Server::~Server() = default;

int Server::port() const {
  return impl_->port();
}

std::string Server::url() const {
  const std::string& host = impl_->options().host;
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}:{}", v6 ? fmt::format("[{}]", host) : host, port());
}

void Server::stop() {
  impl_->stop(impl_->options().grace);
}

}  // namespace cupel
