#include "cupel/cli/assay_cells.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cupel/base/error.h"
#include "cupel/cli/prompt_check.h"

namespace cupel {
namespace {

void add_model_cells(const AssayFlags& flags, std::vector<AssayCell>& cells) {
  std::vector<std::filesystem::path> models;
  models.reserve(flags.models.size());
  for (const std::string& model : flags.models) models.push_back(resolve_model_path(model));
  if (models.empty()) models.push_back(resolve_model_path(std::nullopt));
  std::set<std::string> names;
  for (const auto& model : models) names.insert(model_label(model));
  const bool unique = names.size() == models.size();

  std::vector<BackendKind> kinds;
  kinds.reserve(flags.backends.size());
  for (const std::string& flag : flags.backends) kinds.push_back(parse_backend_flag(flag));

  for (const auto& model : models) {
    for (const BackendKind kind : kinds) {
      const std::string backend(backend_name(kind));
      const std::string model_name = unique ? model_label(model) : model.string();
      cells.push_back({.name = fmt::format("{}/{}", model_name, backend),
                       .model = model,
                       .model_name = model_name,
                       .backend = backend,
                       .kind = kind,
                       .endpoint = {}});
    }
  }
}

// The servers are asked later: a mistake elsewhere shows first.
void add_endpoint_cells(const AssayFlags& flags, std::vector<AssayCell>& cells) {
  for (const std::string& flag : flags.endpoints) {
    const std::size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (equals == std::string::npos || name.empty() || name.find("://") != std::string::npos) {
      // Not the flag itself: a URL may hold a password.
      throw InputError("--endpoint", "NAME=URL", "no name before the URL");
    }
    parse_endpoint(flag.substr(equals + 1));
    cells.push_back({.name = name,
                     .model = {},
                     .model_name = {},
                     .backend = {},
                     .kind = BackendKind::kUnified,
                     .endpoint = {}});
  }
}

// "MODEL/triton" is "MODEL/packed"; any other text stays as it is.
std::string own_backend_name(const std::string& cell) {
  const std::size_t slash = cell.rfind('/');
  if (slash == std::string::npos) return cell;
  try {
    const BackendKind kind = parse_backend(cell.substr(slash + 1));
    return cell.substr(0, slash + 1) + std::string(backend_name(kind));
  } catch (const InputError&) {
    return cell;
  }
}

std::string file_label(const AssayCell& cell) {
  std::string name = cell.name;
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace

std::vector<AssayCell> make_cells(const AssayFlags& flags) {
  std::vector<AssayCell> cells;
  // Without endpoints the environment may name the model.
  if (!flags.models.empty() || flags.endpoints.empty()) add_model_cells(flags, cells);
  if (!cells.empty() && !flags.endpoints.empty() && parse_api(flags.server.api) == Api::kChat) {
    throw InputError("--api", "completions or generate beside --model: a chat prompt is another",
                     flags.server.api);
  }
  add_endpoint_cells(flags, cells);
  std::set<std::string> seen;  // as files are named
  for (const AssayCell& cell : cells) {
    if (!seen.insert(file_label(cell)).second) {
      throw InputError("cells", "each model and backend or endpoint once", cell.name + " twice");
    }
  }
  if (cells.size() < 2) {
    throw InputError("cells", "at least two (models x backends, endpoints)", "one");
  }
  return cells;
}

std::size_t find_reference(const std::vector<AssayCell>& cells, const std::string& name) {
  const std::string other = own_backend_name(name);
  std::string names;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].name == name || (!cells[i].is_endpoint() && cells[i].name == other)) return i;
    names += (names.empty() ? "one of " : ", ") + cells[i].name;
  }
  throw InputError("--reference", names, name);
}

std::string records_file(const AssayFlags& flags, const Task& task, const AssayCell& cell) {
  return (std::filesystem::path(flags.records) /
          fmt::format("{}.{}.jsonl", task.name, file_label(cell)))
      .string();
}

std::string looks_file(const AssayFlags& flags, const Task& task, const AssayCell& cell) {
  return records_file(flags, task, cell) + ".looks.json";
}

// Whatever is wrong with any cell shows before the first one runs.
void check_cells(const AssayFlags& flags, const Task& task, const std::vector<AssayCell>& cells) {
  std::filesystem::path checked;
  std::optional<ModelConfig> config;
  for (const AssayCell& cell : cells) {
    if (cell.is_endpoint()) continue;
    const EngineOptions options = flags.engine.options(cell.model, cell.kind);
    if (cell.model != checked) {
      config = Checkpoint(cell.model).config();
      check_prompts(task, Tokenizer::load(cell.model / "tokenizer.json"), *config);
      checked = cell.model;
    }
    check_backend(cell.kind, options.network.kv_dtype, *config);
  }
}

// Asks every endpoint what it is and for a token.
void connect_endpoints(const AssayFlags& flags, std::vector<AssayCell>& cells) {
  std::size_t next = 0;
  for (AssayCell& cell : cells) {
    if (!cell.is_endpoint()) continue;
    const std::string& flag = flags.endpoints[next++];
    cell.endpoint =
        std::make_shared<HttpTarget>(flags.server.options(flag.substr(flag.find('=') + 1)));
    cell.endpoint->check();
    cell.backend = cell.endpoint->identity().backend;
  }
}

}  // namespace cupel
