#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drafthorse {

/// A safetensors file with this header text and these data bytes, whether they fit together or not.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string file;
  const std::uint64_t length = header.size();
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>((length >> (8 * i)) & 0xff));
  return file + header + data;
}

/// A correct file of float32 tensors: each filled with its own index in `names`, all of shape [2].
inline std::string safetensors_of(const std::vector<std::string>& names) {
  std::string header = "{";
  std::string data;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const float value = static_cast<float>(i);
    header += (i == 0 ? "\"" : ",\"") + names[i] + R"(":{"dtype":"F32","shape":[2],"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(data.size() + 8) + "]}";
    for (int copy = 0; copy < 2; ++copy) data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return safetensors_bytes(header + "}", data);
}

}  // namespace drafthorse
