#include "engine/quantize.h"

#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/load_progress.h"

namespace drafthorse {
namespace {

struct QuantizeFlags {
  std::string in;
  std::string out;
  std::string weights;
  int threads = 0;
};

int quantize(const QuantizeFlags& flags) {
  const WeightsChoice weights = WeightsChoice::parse(flags.weights);
  Machine machine(flags.threads);
  const QuantizeResult result = quantize_folder(flags.in, flags.out, weights, machine.exec(), load_progress("packing"));
  std::printf("%s: %zu linear layers packed as %s, %s of tensors became %s\n", flags.out.c_str(), result.layers,
              result.weights.c_str(), bytes_text(result.before).c_str(), bytes_text(result.after).c_str());
  return kExitOk;
}

}  // namespace

Command add_quantize_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("quantize", "a model folder with its weights packed, smaller and loaded at once");
  auto flags = std::make_shared<QuantizeFlags>();
  command->add_option("IN", flags->in, "folder of a target or a draft")->required()->type_name("");
  command->add_option("OUT", flags->out, "folder to make")->required()->type_name("");
  command->add_option("--weights", flags->weights, "type of the linear layers, as for run; \"file\" keeps theirs")
      ->required()
      ->type_name("T");
  command->add_option("--threads", flags->threads, "0: one a core")->type_name("N")->check(CLI::Range(0, 1024));
  command->footer(
      "OUT is a model folder like IN: it runs under every instruction set and gives the text that IN gives with the\n"
      "same --weights. Embedding tables, norms and biases stay as they are.\n"
      "Example:\n  drafthorse quantize models/demo/target /tmp/demo-q4 --weights q4_k\n"
      "  drafthorse run /tmp/demo-q4 --draft models/demo/dflash -p 'def main():'");
  return {command, [flags] { return quantize(*flags); }};
}

}  // namespace drafthorse
