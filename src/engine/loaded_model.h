#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/draft_head_options.h"
#include "engine/generate.h"
#include "engine/model_files.h"
#include "model/registry.h"
#include "ops/machine.h"
#include "speculative/drafter.h"

namespace drafthorse {

/// How weights are held: a type for every linear layer, "exact" (f32, whatever the file has), or as the file has them.
class WeightsChoice {
 public:
  WeightsChoice() = default;
  /// "exact", "file" or a name of weight_type. Throws Error listing them for anything else.
  static WeightsChoice parse(std::string_view text);

  /// Nothing: each tensor as the file has it.
  std::optional<WeightType> type() const { return type_; }
  /// The spelling it was chosen by.
  const std::string& name() const { return name_; }
  /// The cache type that goes with it: f32 for f32 and exact, else bf16.
  ElementType kv_type() const;

 private:
  std::string name_ = "file";
  std::optional<WeightType> type_;
};

/// "bf16" or "f32". Throws Error for anything else.
ElementType parse_kv_type(std::string_view text);

/// How a target and its draft are held in memory, and what runs them.
struct LoadOptions {
  WeightsChoice weights;
  std::optional<ElementType> kv_type;  ///< nothing: WeightsChoice::kv_type
  DraftHeadOptions draft_head;         ///< what the draft's rows are projected with
  std::int64_t context = 0;            ///< positions a sequence may hold; 0: what the config says
  std::int64_t page_positions = 64;    ///< of the caches
  std::int64_t chunk = 512;            ///< largest number of rows a forward pass will be given, for the memory check
  int threads = 0;                     ///< 0: one a core, less under a quota
  bool pin = false;                    ///< bind every thread to a CPU of its own
  std::string isa;                     ///< a name of runnable_isas(); empty: the best
  /// Told how far loading is: bytes packed, bytes in all. May be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// Positions a sequence may hold: what `options` ask for, else what the config says.
std::int64_t context_of(const TargetFiles& target, const LoadOptions& options);

/// A target, and a draft bound to it, ready to run on one machine.
class LoadedModel {
 public:
  /// Checks the pairing and the free memory, then loads onto threads of its own. `draft` may be null. `target` and
  /// `draft` outlive the model. Throws Error when the draft was not made for this target, when the context is longer
  /// than the target's, and, of kind kMemory, "needs X, Y free".
  LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options);
  /// The same on a machine that outlives the model; options.threads, pin and isa are not read.
  LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options, ExecContext& exec);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const TargetFiles& files() const { return files_; }
  Model& target() { return *target_; }
  Drafter* drafter() { return drafter_.get(); }  ///< null without a draft
  ExecContext& exec() { return *exec_; }
  const char* isa() const { return exec_->kernels.name; }
  int threads() const { return exec_->pool.threads(); }
  /// "2 threads (4 cores, a quota of 2 CPUs)", for people.
  std::string threads_text() const;
  /// What continues texts on it. Borrows from the model.
  Generator generator();
  /// What is legal but doubtful, one line each, for the user.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// How the weights are held, for reports: the choice's name, or the type most of the file's matrices have.
  const std::string& weights_name() const { return weights_name_; }

 private:
  LoadedModel(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options,
              std::unique_ptr<Machine> machine, ExecContext* exec);

  const TargetFiles& files_;
  std::unique_ptr<Machine> machine_;  // null when the machine is the caller's
  ExecContext* exec_;
  std::unique_ptr<Model> target_;
  std::unique_ptr<DraftModel> draft_;
  std::unique_ptr<Drafter> drafter_;
  std::vector<std::string> warnings_;
  std::string weights_name_;
};

/// Names of the kernel tables this CPU can run, the slow reference first.
std::vector<std::string> runnable_isas();
/// Throws Error when `name` is no kernel table, or one this CPU cannot run.
void require_isa(const std::string& name);

/// What a target and a draft (may be null) would take.
struct MemoryPlan {
  MemoryNeed target;
  MemoryNeed draft;
  std::uint64_t total() const;
};
MemoryPlan plan_memory(const TargetFiles& target, const DraftFiles* draft, const LoadOptions& options);
/// Throws Error (kind kMemory) naming the model, the parts of the need and what to change when `plan` needs more than
/// `free` bytes.
void require_memory(const MemoryPlan& plan, std::uint64_t free, const std::string& path);
/// "1.3 GB", "420 MB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace drafthorse
