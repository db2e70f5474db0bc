#include "cupel/eval/endpoint.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <httplib.h>

#include "cupel/base/error.h"

namespace cupel {
namespace {

constexpr std::array<std::pair<Api, std::string_view>, 3> kApis = {{
    {Api::kCompletions, "completions"},
    {Api::kChat, "chat"},
    {Api::kGenerate, "generate"},
}};

// Says what was wrong without the URL where that may hold a password.
[[noreturn]] void refuse(std::string_view found) {
  throw InputError("endpoint", "a URL such as http://127.0.0.1:30000 or https://host/v1", found);
}

bool has_blank_or_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; });
}

void check_port(std::string_view authority) {
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view host = authority.substr(0, colon);
  if (host.empty() || (host.front() == '[') != (host.back() == ']')) refuse("no host");
  if (colon == std::string_view::npos) return;
  const std::string_view digits = authority.substr(colon + 1);
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 1 || port > 65535) {
    refuse("port " + std::string(digits));
  }
}

}  // namespace

Api parse_api(std::string_view name) {
  for (const auto& [api, known] : kApis) {
    if (name == known) return api;
  }
  throw InputError("--api", "completions, chat or generate", name);
}

std::string_view api_name(Api api) {
  for (const auto& [known, name] : kApis) {
    if (api == known) return name;
  }
  return {};
}

EndpointUrl parse_endpoint(std::string_view url) {
  if (has_blank_or_control(url)) refuse("a URL with a blank or a control character");
  const std::size_t scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    refuse("no http:// or https:// at its beginning");
  }
#ifndef CPPHTTPLIB_OPENSSL_SUPPORT
  if (scheme == "https") refuse("https, which this build has no support for");
#endif
  const std::string_view rest = url.substr(scheme_end + 3);
  if (rest.find('@') != std::string_view::npos) {
    refuse("a user name or password in it (a key is passed by --api-key-env)");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) refuse("a query or a fragment in it");
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  check_port(authority);

  std::string_view path = rest.substr(slash);
  const auto drop_slashes = [&] {
    while (path.ends_with('/')) path.remove_suffix(1);
  };
  drop_slashes();
  if (path.ends_with("/v1")) path.remove_suffix(3);
  drop_slashes();
  return {std::string(scheme) + "://" + std::string(authority), std::string(path)};
}

}  // namespace cupel
