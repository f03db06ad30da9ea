// S3 identity: who signs, for which region and endpoint, from options, environment and the shared
// configuration files, in the order the AWS tools use.
// Thread-safety: pure apart from reading the two files.
// Ownership: values. Secrets never enter a message.
#pragma once

#include <optional>
#include <string>

#include "headrace/store/open_store.h"
#include "headrace/store/sigv4.h"

namespace headrace::store {

struct S3Identity {
  std::optional<SigV4Keys> keys{};        // none: requests are not signed
  std::string source{};                   // where the keys came from, for messages
  std::string region{};                   // never empty
  std::optional<std::string> endpoint{};  // none: Amazon's own
  std::optional<std::string> ca_bundle{};
  std::optional<std::string> addressing{};  // "path" | "virtual"
};

// Keys: a profile that is named in the options; else AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY
// and AWS_SESSION_TOKEN; else profile AWS_PROFILE or "default" of AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config). Denied when there are none;
// Unimplemented, by name, for keys that would have to be fetched (roles, SSO, processes,
// containers).
Result<S3Identity> find_s3_identity(const StoreOptions& options, const StoreDeps& deps);

}  // namespace headrace::store
