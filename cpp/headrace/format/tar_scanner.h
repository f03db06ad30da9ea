// Finds the samples of a WebDataset tar archive that comes in pieces of any size.
// Thread-safety: a scanner belongs to one thread at a time.
// Ownership: samples own their texts; the scanner keeps one header and no member's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/status.h"
#include "headrace/format/field.h"
#include "headrace/format/tar_header.h"

namespace headrace::format {

// One file of a sample.
struct TarField {
  std::string extension;     // lower case, without the dot that begins it
  std::uint64_t offset = 0;  // of its bytes in the archive
  std::uint64_t size = 0;
};

// Consecutive members with one key.
struct TarSample {
  std::string key;
  std::uint64_t begin = 0;  // of its first header, extensions included
  std::uint64_t end = 0;    // of its last block
  std::vector<TarField> fields;
};

class TarScanner {
 public:
  // `archive` is what messages call it.
  explicit TarScanner(std::string archive) : archive_(std::move(archive)) {}

  // Takes the next bytes; samples that are complete are appended. After an error the scanner must
  // not be used any more.
  Status feed(ByteView piece, std::vector<TarSample>& out);
  // Says that no more bytes come; the last sample is appended. Corrupt when the archive does not
  // end as archives do.
  Status finish(std::vector<TarSample>& out);

 private:
  enum class State : std::uint8_t { kHeader, kExtension, kSkip, kEnd };

  Status take_header(ByteView block, std::vector<TarSample>& out);
  Status take_extension();
  Status take_member(const TarMember& member, std::vector<TarSample>& out);
  Status fail(const Status& status, std::string_view member) const;

  const std::string archive_;
  State state_ = State::kHeader;
  std::uint64_t position_ = 0;     // of the next byte to come
  std::uint64_t header_at_ = 0;    // where the header at hand begins
  std::uint64_t entry_begin_ = 0;  // where the member at hand begins, with its extensions
  std::uint64_t skip_ = 0;         // bytes of a member still to pass
  std::uint64_t extension_bytes_ = 0;
  char extension_type_ = 'x';
  std::string buffer_;  // a part of a header or of an extension
  TarExtensions extensions_;
  TarSample sample_;
};

// The type that WebDataset's own decoders give a file of this extension, as far as it is one of
// Headrace's kinds; others are bytes.
FieldType wds_field_type(std::string_view extension);

inline constexpr std::string_view kWdsKeyField = "__key__";

// Gathers the schema of samples: the key, then every extension that occurs, in the order of their
// names, nullable where some sample lacks it.
class WdsSchemaBuilder {
 public:
  void add(const TarSample& sample);
  void merge(const WdsSchemaBuilder& other);
  // InvalidArgument when there are too many extensions, as dots in file names make them.
  Result<Schema> finish() const;

 private:
  std::uint64_t samples_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
};

}  // namespace headrace::format
