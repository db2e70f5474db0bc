#include <map>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cupel/checkpoint/plain_read.h"
#include "cupel/checkpoint/repack.h"
#include "cupel/cli/byte_progress.h"
#include "cupel/cli/command.h"

namespace cupel {

void add_repack_command(CLI::App& app, Run& run) {
  struct Flags {
    std::string in;
    std::string out;
    std::string experts;
    bool verify = false;
    bool json = false;
    bool throughput = false;
    int threads = 0;
    int top = 20;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "repack",
      "Writes a checkpoint with its routed experts in another form; nothing is overwritten");
  command->add_option("--experts", flags->experts, "Form of the routed experts: fp8, fp4 or bf16")
      ->required()
      ->check(CLI::IsMember({"fp8", "fp4", "bf16"}));
  command->add_option("in", flags->in, "Checkpoint folder")->required();
  command
      ->add_option("out", flags->out,
                   "Folder to make. Built under OUT.partial; an interrupted run goes on there")
      ->required();
  command->add_flag("--verify", flags->verify,
                    "Read the result back and compare every value first (default: do not)");
  command->add_flag("--json", flags->json, "Print every weight and block as JSON (default: text)");
  command->add_option("--top", flags->top, "Lossy blocks that the text lists")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  command->add_option("--threads", flags->threads, "Threads, 0 for one a hardware thread")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->add_flag("--throughput", flags->throughput,
                    "Say how fast shards were written, as a ratio to a plain read of the input "
                    "(default: do not measure)");
  command->callback([=, &run] {
    run = [=] {
      static const std::map<std::string, ExpertDtype> kForms = {
          {"fp4", ExpertDtype::kFp4}, {"fp8", ExpertDtype::kFp8}, {"bf16", ExpertDtype::kBf16}};
      PlainRead plain;
      if (flags->throughput) plain = plain_read({flags->in});
      const RepackReport report = repack(
          flags->in, flags->out,
          {kForms.at(flags->experts), flags->verify, flags->threads, byte_progress("repack")});
      fmt::print("{}", flags->json ? repack_json(report) : repack_text(report, flags->top));
      if (flags->throughput) {
        print_throughput("repack", report.bytes_converted, report.seconds, plain);
      }
      return ExitCode::kPass;
    };
  });
}

}  // namespace cupel
