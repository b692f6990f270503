#include "model/layers/swiglu_mlp.h"

#include "model/layers/linear_input.h"
#include "ops/activation.h"

namespace drafthorse {

std::vector<LinearSpec> SwigluMlp::specs(const std::string& module, std::int64_t hidden, std::int64_t intermediate,
                                         BiasRule bias, const std::string& owner) {
  return {
      {.parts = {{.module = module + ".gate_proj", .rows = intermediate},
                 {.module = module + ".up_proj", .rows = intermediate}},
       .cols = hidden,
       .bias = bias,
       .owner = owner},
      {.parts = {{.module = module + ".down_proj", .rows = hidden}},
       .cols = intermediate,
       .bias = bias,
       .owner = owner},
  };
}

SwigluMlp::SwigluMlp(WeightLoader& loader, const std::vector<LinearSpec>& specs)
    : gate_up_(loader.linear(specs[0])), down_(loader.linear(specs[1])) {}

void SwigluMlp::forward(ConstRows x, Rows gate_up, std::byte* packing, Rows out, const ExecContext& exec) const {
  LinearInput(x, packing, exec).into(gate_up_, gate_up);
  const Rows active{gate_up.data, gate_up.rows, intermediate(), gate_up.stride};
  silu_multiply(gate_up, active, exec);
  LinearInput(active, packing, exec).into(down_, out);
}

}  // namespace drafthorse
