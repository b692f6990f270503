#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drafthorse {

/// The content of model.safetensors.index.json.
struct ShardIndex {
  std::string source;                          ///< its path
  std::map<std::string, std::string> tensors;  ///< name -> full path of the file that holds it
};

/// The safetensors files of one model.
struct ShardSet {
  std::vector<std::string> files;   ///< full paths, sorted; every one exists
  std::optional<ShardIndex> index;  ///< when the folder has one
};

/// `path`: one file, or a folder searched in the order open_safetensors() gives. Throws Error when nothing is found,
/// when files that the index names or that a numbering "-00001-of-00003" implies are missing (all are listed), or when
/// the index is malformed or names a file outside its folder.
ShardSet find_shards(const std::string& path);

/// "a, b, c"; past the first fifty names only their number.
std::string name_list(const std::vector<std::string>& names);

}  // namespace drafthorse
