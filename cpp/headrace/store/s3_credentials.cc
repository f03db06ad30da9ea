#include "headrace/store/s3_credentials.h"

#include <array>
#include <utility>

#include "headrace/store/ini_file.h"
#include "headrace/store/local_file.h"

namespace headrace::store {
namespace {

constexpr std::string_view kDefaultRegion = "us-east-1";

using Names = std::map<std::string, std::string>;

class Finder {
 public:
  Finder(const StoreOptions& options, const StoreDeps& deps) : options_(options), deps_(deps) {}

  Result<S3Identity> find() {
    profile_ = options_.profile ? *options_.profile : env("AWS_PROFILE").value_or("default");
    const bool named = options_.profile || env("AWS_PROFILE");
    HR_TRY(load("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials", false));
    HR_TRY(load("AWS_CONFIG_FILE", "/.aws/config", true));
    if (named && !found_) {
      return invalid_argument("profile '" + profile_ + "' is in neither of " + files_ +
                              "; check its name, or the variables AWS_CONFIG_FILE and "
                              "AWS_SHARED_CREDENTIALS_FILE");
    }
    S3Identity out;
    settings(out);
    if (options_.anonymous) return out;
    HR_TRY(keys(out));
    return out;
  }

 private:
  std::optional<std::string> env(std::string_view name) const {
    if (!deps_.env) return std::nullopt;
    auto value = deps_.env(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }

  // Adds the names of the profile from one file; what an earlier file said wins.
  Status load(std::string_view variable, std::string_view below_home, bool is_config) {
    std::string path;
    if (const auto given = env(variable)) {
      path = *given;
    } else if (const auto home = env("HOME")) {
      path = *home + std::string(below_home);
    } else {
      return Status::ok();
    }
    if (path.starts_with("~/") && env("HOME")) path = *env("HOME") + path.substr(1);
    files_ += (files_.empty() ? "" : " and ") + path;
    auto file = open_for_reading(path);
    if (file.status().code() == Code::kNotFound) return Status::ok();
    if (!file.is_ok()) return file.status();
    HR_ASSIGN(const ObjectInfo info, stat_file(*file, path));
    if (info.size > kIniBytesMax) return invalid_argument(path + " is larger than 1 MiB");
    std::string text(info.size, '\0');
    HR_TRY(read_fully(*file, 0, {reinterpret_cast<std::byte*>(text.data()), text.size()}, path));
    auto parsed = parse_ini(text);
    if (!parsed.is_ok()) return parsed.status().with_context(path);
    const bool prefixed = is_config && profile_ != "default";
    auto section = parsed->find(prefixed ? "profile " + profile_ : profile_);
    if (section == parsed->end() && is_config) section = parsed->find("profile " + profile_);
    if (section == parsed->end()) return Status::ok();
    found_ = true;
    for (auto& [name, value] : section->second) names_.emplace(name, value);
    return Status::ok();
  }

  std::optional<std::string> setting(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }

  static std::optional<std::string> first(
      std::initializer_list<std::optional<std::string>> choices) {
    for (const auto& choice : choices) {
      if (choice) return choice;
    }
    return std::nullopt;
  }

  void settings(S3Identity& out) const {
    out.region =
        first({options_.region, env("AWS_REGION"), env("AWS_DEFAULT_REGION"), setting("region")})
            .value_or(std::string(kDefaultRegion));
    out.endpoint = first({options_.endpoint, env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"),
                          setting("endpoint_url")});
    out.ca_bundle = first({options_.ca_bundle, env("AWS_CA_BUNDLE"), setting("ca_bundle")});
    out.addressing = first({options_.addressing, setting("s3.addressing_style")});
    if (out.addressing == "auto") out.addressing.reset();
  }

  Status keys(S3Identity& out) const {
    if (!options_.profile) {
      const auto access = env("AWS_ACCESS_KEY_ID");
      const auto secret = env("AWS_SECRET_ACCESS_KEY");
      if (access.has_value() != secret.has_value()) {
        return invalid_argument("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
      }
      if (access) {
        out.keys = SigV4Keys{*access, *secret, env("AWS_SESSION_TOKEN").value_or("")};
        out.source = "the environment (AWS_ACCESS_KEY_ID)";
        return usable(*out.keys);
      }
      HR_TRY(refuse_fetched_environment());
    }
    const auto access = setting("aws_access_key_id");
    const auto secret = setting("aws_secret_access_key");
    if (access.has_value() != secret.has_value()) {
      return invalid_argument("profile '" + profile_ +
                              "' has only one of aws_access_key_id and "
                              "aws_secret_access_key");
    }
    if (access) {
      out.keys = SigV4Keys{*access, *secret, setting("aws_session_token").value_or("")};
      out.source = "profile '" + profile_ + "'";
      return usable(*out.keys);
    }
    HR_TRY(refuse_fetched_profile());
    return denied("no credentials: neither AWS_ACCESS_KEY_ID is set nor has profile '" + profile_ +
                  "' of " + (files_.empty() ? "the shared files (HOME is not set)" : files_) +
                  " any; set them, name a profile, or ask for anonymous access");
  }

  static Status unsupported(const std::string& what) {
    return unimplemented("credentials from " + what +
                         " are not supported yet; export AWS_ACCESS_KEY_ID, "
                         "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN (for example with 'aws "
                         "configure export-credentials --format env')");
  }

  Status refuse_fetched_environment() const {
    if (env("AWS_WEB_IDENTITY_TOKEN_FILE")) {
      return unsupported("a web identity (AWS_WEB_IDENTITY_TOKEN_FILE)");
    }
    for (std::string_view name :
         {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"}) {
      if (env(name)) return unsupported("a container (" + std::string(name) + ")");
    }
    return Status::ok();
  }

  Status refuse_fetched_profile() const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFetched = {{
        {"web_identity_token_file", "a web identity"},
        {"role_arn", "an assumed role"},
        {"sso_session", "single sign-on"},
        {"sso_start_url", "single sign-on"},
        {"credential_process", "a process"},
        {"credential_source", "a metadata service"},
    }};
    for (const auto& [name, what] : kFetched) {
      if (setting(std::string(name))) {
        return unsupported(std::string(what) + " (" + std::string(name) + " in profile '" +
                           profile_ + "')");
      }
    }
    return Status::ok();
  }

  // Keys go into header lines; a control character would end one.
  Status usable(const SigV4Keys& keys) const {
    for (const std::string* text : {&keys.access_key, &keys.secret_key, &keys.session_token}) {
      for (char c : *text) {
        if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) {
          return invalid_argument("a credential has a blank or control character in it");
        }
      }
    }
    return Status::ok();
  }

  const StoreOptions& options_;
  const StoreDeps& deps_;
  std::string profile_;
  std::string files_;
  bool found_ = false;
  Names names_;
};

}  // namespace

Result<S3Identity> find_s3_identity(const StoreOptions& options, const StoreDeps& deps) {
  return Finder(options, deps).find();
}

}  // namespace headrace::store
