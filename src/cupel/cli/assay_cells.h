// The cells of an assay: a model on a backend, or an endpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cupel/cli/endpoint_flags.h"
#include "cupel/cli/engine_flags.h"
#include "cupel/cli/probe_flags.h"
#include "cupel/cli/report_flags.h"
#include "cupel/cli/task_flags.h"

namespace cupel {

struct AssayFlags {
  EngineFlags engine;
  TaskFlags task;
  std::vector<std::string> models;
  std::vector<std::string> backends = {"packed", "unified"};
  std::vector<std::string> endpoints;  // NAME=URL
  EndpointFlags server;
  std::string reference;
  double margin = 0;
  std::string records = "records";
  bool until_decided = false;
  std::string looks = "1,2,4,8";
  std::string bound = "group";
  std::vector<std::string> probe_names;  // NAME or NAME:MARGIN
  ProbeFlags probes;
  ReportFlags reports;
};

// A model on a backend, or an endpoint.
struct AssayCell {
  std::string name;  // MODEL/BACKEND, or as the endpoint was named
  std::filesystem::path model;
  std::string model_name, backend;
  BackendKind kind = BackendKind::kUnified;
  std::shared_ptr<HttpTarget> endpoint;  // null for a model

  bool is_endpoint() const { return model.empty(); }
};

// The servers are asked later: a mistake elsewhere shows first. Throws InputError, also for fewer
// than two cells and for two of one name.
std::vector<AssayCell> make_cells(const AssayFlags& flags);

// The cell of this name; the backend may be named as SGLang names it (MODEL/triton). Throws
// InputError that says which cells there are.
std::size_t find_reference(const std::vector<AssayCell>& cells, const std::string& name);

// Whatever is wrong with any cell shows before the first one runs. Throws InputError.
void check_cells(const AssayFlags& flags, const Task& task, const std::vector<AssayCell>& cells);

// Asks every endpoint what it is and for a token. Throws InputError and InfrastructureError.
void connect_endpoints(const AssayFlags& flags, std::vector<AssayCell>& cells);

// Where the records of a cell are kept.
std::string records_file(const AssayFlags& flags, const Task& task, const AssayCell& cell);

// Where the looks at them are kept.
std::string looks_file(const AssayFlags& flags, const Task& task, const AssayCell& cell);

}  // namespace cupel
