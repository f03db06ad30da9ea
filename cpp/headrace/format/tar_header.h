// Tar archives block by block: headers, and the extensions that long names and large sizes need.
// Thread-safety: functions are pure; a TarExtensions belongs to one thread at a time.
// Ownership: views point into the block they were read from, or into the TarExtensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/bytes.h"
#include "headrace/base/status.h"

namespace headrace::format {

inline constexpr std::uint64_t kTarBlock = 512;
// Extension headers hold a name or a few numbers; what is larger than this is an attack.
inline constexpr std::uint64_t kTarExtensionBytesMax = 1 << 20;
inline constexpr std::size_t kTarNameBytesMax = 4096;

inline std::optional<std::uint64_t> pad_to_block(std::uint64_t size) {
  const auto raised = checked_add(size, kTarBlock - 1);
  if (!raised) return std::nullopt;
  return *raised / kTarBlock * kTarBlock;
}

bool is_zero_block(ByteView block);

struct TarHeader {
  char type = '0';
  std::uint64_t size = 0;
  std::string_view name;
  std::string_view prefix;  // goes in front of the name with a slash when not empty
};

// Reads a block of 512 bytes (ustar, GNU or the old form), checksum verified.
Result<TarHeader> parse_tar_header(ByteView block);

// One member of an archive, extensions applied.
struct TarMember {
  std::string_view name;
  std::uint64_t size = 0;
  bool is_file = false;  // else a directory, which has no bytes
};

// Gathers what extension headers say about the member that follows them.
class TarExtensions {
 public:
  // Whether the body of a header of this type goes to apply(): pax 'x' and 'g', GNU 'L' and 'K'.
  static bool is_extension(char type);

  // Extensions that change how many bytes a member has in other ways (sparse files) and global
  // names or sizes are Unimplemented.
  Status apply(char type, std::string_view body);

  // The member that `header` begins; what was gathered is forgotten at the next apply(). Links,
  // devices and names that leave the archive's root are errors.
  Result<TarMember> finish(const TarHeader& header);

  bool is_pending() const { return is_pending_; }

 private:
  Status apply_record(char type, std::string_view key, std::string_view value);

  bool is_pending_ = false;
  std::optional<std::string> name_;
  std::optional<std::uint64_t> size_;
  std::string joined_;
};

// A header block as `tar` in its ustar form writes it: mode 0444, owner and group "bigdata" (as
// webdataset has them), time 0; in front of it a pax header when the name or size needs one.
// Deterministic.
Status append_tar_header(std::string_view name, std::uint64_t size, std::string& out);

// How WebDataset cuts a member's name: the key is all up to the first dot of the base name, the
// extension is what follows. Members that WebDataset skips (no dot, hidden, __meta__) have no key.
struct WdsName {
  bool is_field = false;
  std::string_view key;
  std::string_view extension;  // in the case of the archive; fields are called by it in lower case
};
WdsName split_wds_name(std::string_view name);

}  // namespace headrace::format
