#include "headrace/format/tar_header.h"

#include <array>
#include <charconv>
#include <cstring>

#include "headrace/base/utf8.h"

namespace headrace::format {
namespace {

// Fields of a header: offset and width.
struct Slot {
  std::size_t offset;
  std::size_t width;
};
constexpr Slot kName{0, 100};
constexpr Slot kMode{100, 8};
constexpr Slot kUid{108, 8};
constexpr Slot kGid{116, 8};
constexpr Slot kSize{124, 12};
constexpr Slot kTime{136, 12};
constexpr Slot kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Slot kMagic{257, 8};
constexpr Slot kOwner{265, 32};
constexpr Slot kGroup{297, 32};
constexpr Slot kPrefix{345, 155};

constexpr std::string_view kUstar(
    "ustar\0"
    "00",
    8);
// Octal of 11 digits ends here.
constexpr std::uint64_t kUstarSizeMax = (std::uint64_t{1} << 33) - 1;

std::string_view slot_text(ByteView block, Slot slot) {
  const std::string_view raw = as_text(block.subspan(slot.offset, slot.width));
  return raw.substr(0, std::min(raw.find('\0'), raw.size()));
}

// Octal, or binary when the first bit is set (GNU, for sizes from 8 GiB).
Result<std::uint64_t> slot_number(ByteView block, Slot slot) {
  const ByteView raw = block.subspan(slot.offset, slot.width);
  if ((std::to_integer<unsigned>(raw[0]) & 0x80) != 0) {
    std::uint64_t value = std::to_integer<unsigned>(raw[0]) & 0x7f;
    for (const std::byte b : raw.subspan(1)) {
      if ((value >> 56) != 0) return corrupt("its header holds a number that no file has");
      value = value << 8 | std::to_integer<unsigned>(b);
    }
    return value;
  }
  std::size_t at = 0;
  const std::string_view text = as_text(raw);
  while (at < text.size() && text[at] == ' ') ++at;
  std::uint64_t value = 0;
  for (; at < text.size() && text[at] != ' ' && text[at] != '\0'; ++at) {
    if (text[at] < '0' || text[at] > '7') return corrupt("its header holds a bad octal number");
    value = value * 8 + static_cast<std::uint64_t>(text[at] - '0');
  }
  return value;
}

// Sum of all bytes, the checksum's own counted as spaces. Bytes are summed in 16-bit lanes: 64
// words of at most 2 x 255 stay below 2^16.
std::uint32_t header_sum(ByteView block) {
  constexpr std::uint64_t kEven = 0x00ff00ff00ff00ff;
  std::uint64_t lanes = 0;
  for (std::size_t i = 0; i < kTarBlock; i += 8) {
    const auto word = load_le<std::uint64_t>(block.data() + i);
    lanes += (word & kEven) + ((word >> 8) & kEven);
  }
  std::uint32_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += (lanes >> shift) & 0xffff;
  for (const std::byte b : block.subspan(kChecksum.offset, kChecksum.width)) {
    sum -= std::to_integer<std::uint32_t>(b);
  }
  return sum + ' ' * static_cast<std::uint32_t>(kChecksum.width);
}

// The same with signed bytes, as some old archivers summed; differs only for names beyond ASCII.
std::uint32_t header_sum_signed(ByteView block) {
  std::int32_t sum = ' ' * static_cast<std::int32_t>(kChecksum.width);
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    if (i >= kChecksum.offset && i < kChecksum.offset + kChecksum.width) continue;
    sum += static_cast<signed char>(std::to_integer<unsigned char>(block[i]));
  }
  return static_cast<std::uint32_t>(sum);
}

Status check_name(std::string_view name) {
  if (name.empty()) return corrupt("it has no name");
  if (name.size() > kTarNameBytesMax) {
    return corrupt("its name is longer than " + std::to_string(kTarNameBytesMax) + " bytes");
  }
  if (name.front() == '/') return corrupt("its name is absolute");
  if (name.find('\0') != name.npos) return corrupt("its name holds a NUL byte");
  if (!is_utf8(name)) return corrupt("its name is not UTF-8");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t slash = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, slash - begin) == "..") return corrupt("its name holds '..'");
    begin = slash + 1;
  }
  return Status::ok();
}

Status check_type(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '5':
    case '7': return Status::ok();
    case '1':
    case '2': return corrupt("it is a link, and samples are files; archive what it points to");
    case '3':
    case '4':
    case '6': return corrupt("it is a device or pipe, and samples are files");
    case 'S': return unimplemented("it is a sparse file; archive it without --sparse");
    default:
      return unimplemented("it has the type " + std::to_string(static_cast<unsigned char>(type)) +
                           ", which no WebDataset archive has");
  }
}

std::string pax_record(std::string_view key, std::string_view value) {
  // The length counts its own digits.
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + std::string(key) + "=" + std::string(value) + "\n";
}

void put(std::array<char, kTarBlock>& block, Slot slot, std::string_view text) {
  std::memcpy(block.data() + slot.offset, text.data(), std::min(text.size(), slot.width));
}

void put_octal(std::array<char, kTarBlock>& block, Slot slot, std::uint64_t value) {
  for (std::size_t i = slot.width - 1; i > 0; --i) {
    block[slot.offset + i - 1] = static_cast<char>('0' + (value & 7));
    value >>= 3;
  }
}

void append_block(std::string_view name, std::uint64_t size, char type, std::string& out) {
  std::array<char, kTarBlock> block{};
  put(block, kName, name);
  put_octal(block, kMode, 0444);
  put_octal(block, kUid, 0);
  put_octal(block, kGid, 0);
  put_octal(block, kSize, size);
  put_octal(block, kTime, 0);
  block[kType] = type;
  put(block, kMagic, kUstar);
  put(block, kOwner, "bigdata");
  put(block, kGroup, "bigdata");
  const std::uint32_t sum = header_sum(std::as_bytes(std::span(block)));
  put_octal(block, {kChecksum.offset, kChecksum.width - 1}, sum);
  block[kChecksum.offset + 7] = ' ';
  out.append(block.data(), block.size());
}

}  // namespace

bool is_zero_block(ByteView block) {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i + 8 <= block.size(); i += 8) {
    seen |= load_le<std::uint64_t>(block.data() + i);
  }
  return seen == 0;
}

Result<TarHeader> parse_tar_header(ByteView block) {
  HR_CHECK(block.size() == kTarBlock, "a tar header is one block");
  // RFC 1952: a gzip file begins with these two bytes.
  if (block[0] == std::byte{0x1f} && block[1] == std::byte{0x8b}) {
    return corrupt("this is a gzip'd archive, which has no random access; unpack it with gunzip");
  }
  HR_ASSIGN(const std::uint64_t sum, slot_number(block, kChecksum));
  if (sum != header_sum(block) && sum != header_sum_signed(block)) {
    return corrupt("its header does not match its checksum");
  }
  TarHeader header;
  header.type = as_text(block)[kType];
  HR_ASSIGN(header.size, slot_number(block, kSize));
  header.name = slot_text(block, kName);
  // GNU's own form keeps other things where ustar has the prefix.
  if (as_text(block.subspan(kMagic.offset, kMagic.width)) == kUstar) {
    header.prefix = slot_text(block, kPrefix);
  }
  return header;
}

bool TarExtensions::is_extension(char type) {
  return type == 'x' || type == 'g' || type == 'L' || type == 'K';
}

Status TarExtensions::apply(char type, std::string_view body) {
  if (!is_pending_) {
    name_.reset();
    size_.reset();
  }
  // A global header is no part of the member that follows.
  is_pending_ = is_pending_ || type != 'g';
  if (type == 'K') return Status::ok();  // names of link targets; links are refused anyway
  if (type == 'L') {
    name_ = std::string(body.substr(0, std::min(body.find('\0'), body.size())));
    return Status::ok();
  }
  while (!body.empty()) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), length);
    const auto digits = static_cast<std::size_t>(end - body.data());
    if (error != std::errc() || length > body.size() || length < digits + 3 ||
        body[digits] != ' ' || body[length - 1] != '\n') {
      return corrupt("its pax header holds a malformed record");
    }
    const std::string_view record = body.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) return corrupt("its pax header holds a record without '='");
    HR_TRY(apply_record(type, record.substr(0, equals), record.substr(equals + 1)));
    body.remove_prefix(length);
  }
  return Status::ok();
}

Status TarExtensions::apply_record(char type, std::string_view key, std::string_view value) {
  if (key.starts_with("GNU.sparse.")) {
    return unimplemented("it is a sparse file; archive it without --sparse");
  }
  if (key != "path" && key != "size") return Status::ok();
  if (type == 'g') {
    return unimplemented("a global pax header sets '" + std::string(key) +
                         "' for all members; write the archive again without it");
  }
  if (key == "path") {
    name_ = std::string(value);
    return Status::ok();
  }
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
  if (error != std::errc() || end != value.data() + value.size()) {
    return corrupt("its pax header holds a bad size");
  }
  size_ = size;
  return Status::ok();
}

Result<TarMember> TarExtensions::finish(const TarHeader& header) {
  HR_TRY(check_type(header.type));
  TarMember member;
  member.size = header.size;
  if (is_pending_ && size_) member.size = *size_;
  if (is_pending_ && name_) {
    member.name = *name_;
  } else if (header.prefix.empty()) {
    member.name = header.name;
  } else {
    joined_.assign(header.prefix).append("/").append(header.name);
    member.name = joined_;
  }
  is_pending_ = false;
  HR_TRY(check_name(member.name));
  // The oldest archives mark directories by a slash only.
  member.is_file = header.type != '5' && member.name.back() != '/';
  if (!member.is_file) member.size = 0;
  return member;
}

Status append_tar_header(std::string_view name, std::uint64_t size, std::string& out) {
  HR_TRY(check_name(name));
  std::string pax;
  bool is_ascii = true;
  for (const char c : name) is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
  if (name.size() > kName.width || !is_ascii) pax += pax_record("path", name);
  if (size > kUstarSizeMax) pax += pax_record("size", std::to_string(size));
  if (!pax.empty()) {
    append_block("././@PaxHeader", pax.size(), 'x', out);
    out += pax;
    out.resize(out.size() + (kTarBlock - pax.size() % kTarBlock) % kTarBlock, '\0');
  }
  append_block(name.substr(0, kName.width), size > kUstarSizeMax ? 0 : size, '0', out);
  return Status::ok();
}

WdsName split_wds_name(std::string_view name) {
  WdsName out;
  const std::string_view first = name.substr(0, std::min(name.find('/'), name.size()));
  if (first.size() >= 4 && first.starts_with("__") && first.ends_with("__")) return out;
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == name.npos || dot == base || dot + 1 == name.size()) return out;
  out.is_field = true;
  out.key = name.substr(0, dot);
  out.extension = name.substr(dot + 1);
  return out;
}

}  // namespace headrace::format
