// A small body goes up in one PUT. A large one: create an upload, send parts, complete. Any failure
// after the first step aborts the upload, so that no invisible parts stay behind and cost money;
// the abort has a deadline of its own and goes on while the store closes.
#include "headrace/store/s3_upload.h"

#include <algorithm>
#include <utility>

#include "headrace/base/sha256.h"
#include "headrace/store/s3_error.h"

namespace headrace::store {
namespace {

// S3 takes 10,000 parts of 5 MiB to 5 GiB.
constexpr std::uint64_t kPartsMax = 10'000;
constexpr std::uint64_t kPartBytesMin = 16ULL << 20;
constexpr Duration kAbortTimeout = std::chrono::seconds(10);

std::string sha256_of(std::string_view bytes) { return to_hex(sha256(as_bytes(bytes))); }

void set_body(Ask& ask, std::shared_ptr<const std::string> body, ByteRange range) {
  ask.body_sha256 = sha256_of(std::string_view(*body).substr(range.offset, range.length));
  ask.body = std::move(body);
  ask.body_range = range;
}

std::string etag_of(const HttpResponse& response) {
  const std::string* etag = response.head.find("etag");
  return etag ? *etag : std::string();
}

std::string xml_escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

struct S3Upload::Step {
  Ask ask;
  Trail trail;
  bool outcome_unknown = false;  // an attempt may have succeeded without our hearing of it
  std::function<Verdict(const HttpResponse&)> accept;
};

S3Upload::S3Upload(Port& port, HttpCaller& caller, Dialect& dialect, PutRequest request,
                   TimePoint deadline, std::function<void(Result<ObjectInfo>)> done)
    : port_(port),
      caller_(caller),
      dialect_(dialect),
      request_(std::move(request)),
      deadline_(deadline),
      name_(dialect.describe(request_.key)),
      done_(std::move(done)) {}

void S3Upload::begin() {
  if (request_.stop.stop_possible()) {
    on_stop_.emplace(request_.stop, [source = stop_source_]() mutable { source.request_stop(); });
  }
  if (request_.body->size() <= kWholeBytesMax) {
    put_whole();
  } else {
    create_upload();
  }
}

ByteRange S3Upload::part_range(std::size_t i) const {
  const std::uint64_t offset = i * part_bytes_;
  return {offset, std::min(part_bytes_, request_.body->size() - offset)};
}

Verdict S3Upload::judge(Step& step, const HttpResponse& response) {
  if (!response.transport.is_ok()) {
    step.outcome_unknown = true;
    return {.status = response.transport};
  }
  if (response.head.is_success()) {
    // Some steps answer 200 before they have succeeded and put the error into the body.
    if (is_error_document(response.text)) {
      HttpResponse failed = response;
      failed.head.status = 500;
      return dialect_.refuse(step.ask, failed, step.trail);
    }
    return step.accept(response);
  }
  if (response.head.status == 412) {
    return {.status = invalid_argument(
                step.outcome_unknown
                    ? "the object exists now, and an earlier attempt of this put may have made it; "
                      "compare it with what was to be written"
                    : "the object exists already"),
            .last = true};
  }
  if (response.head.status >= 500) step.outcome_unknown = true;
  return dialect_.refuse(step.ask, response, step.trail);
}

void S3Upload::call(std::string what, Ask ask, std::function<Verdict(const HttpResponse&)> accept,
                    std::function<void(Status)> done) {
  auto step = std::make_shared<Step>();
  step->ask = std::move(ask);
  step->accept = std::move(accept);
  HttpCall call;
  call.what = std::move(what);
  call.deadline = deadline_;
  call.priority = Priority::kBulk;
  call.stop = stop_source_.get_token();
  call.build = [self = shared_from_this(), step]() -> Result<HttpRequest> {
    HR_ASSIGN(HttpRequest request, self->dialect_.build(step->ask, step->trail));
    // Storing takes the server its time; the deadline bounds it.
    request.answer_timeout = self->deadline_ - self->port_.now();
    return request;
  };
  call.judge = [self = shared_from_this(), step](HttpResponse& response) {
    return self->judge(*step, response);
  };
  call.done = std::move(done);
  caller_.start(std::move(call));
}

void S3Upload::put_whole() {
  Ask ask{.method = "PUT", .key = request_.key};
  set_body(ask, request_.body, {0, request_.body->size()});
  if (request_.only_if_absent) ask.headers.emplace_back("if-none-match", "*");
  call(
      "writing " + name_, std::move(ask),
      [this](const HttpResponse& response) -> Verdict {
        final_etag_ = etag_of(response);
        return {};
      },
      [self = shared_from_this()](const Status& status) {
        self->end(status.is_ok()
                      ? Result<ObjectInfo>({self->request_.body->size(), self->final_etag_})
                      : Result<ObjectInfo>(status));
      });
}

void S3Upload::create_upload() {
  constexpr std::uint64_t kMiB = 1 << 20;
  const std::uint64_t least = (request_.body->size() + kPartsMax - 1) / kPartsMax;
  part_bytes_ = std::max(kPartBytesMin, (least + kMiB - 1) / kMiB * kMiB);
  Ask ask{.method = "POST", .key = request_.key, .query = {{"uploads", ""}}};
  call(
      "starting the upload of " + name_, std::move(ask),
      [this](const HttpResponse& response) -> Verdict {
        upload_id_ = xml_text(response.text, "UploadId").value_or("");
        if (upload_id_.empty()) {
          return {.status = corrupt("the store starts an upload without naming it")};
        }
        return {};
      },
      [self = shared_from_this()](const Status& status) {
        if (status.is_ok()) {
          self->send_parts();
        } else {
          self->end(status);
        }
      });
}

void S3Upload::send_parts() {
  const std::size_t count = (request_.body->size() + part_bytes_ - 1) / part_bytes_;
  {
    MutexLock lock(mutex_);
    etags_.resize(count);
    open_ = count;
  }
  for (std::size_t i = 0; i < count; ++i) {
    // A task each, so that several workers hash.
    port_.executor().post([self = shared_from_this(), i] { self->send_part(i); });
  }
}

void S3Upload::send_part(std::size_t i) {
  if (stop_source_.stop_requested()) {
    part_done(i, "", cancelled("the upload was stopped"));
    return;
  }
  Ask ask{.method = "PUT",
          .key = request_.key,
          .query = {{"partNumber", std::to_string(i + 1)}, {"uploadId", upload_id_}}};
  set_body(ask, request_.body, part_range(i));
  auto etag = std::make_shared<std::string>();
  call(
      "writing part " + std::to_string(i + 1) + " of " + name_, std::move(ask),
      [etag](const HttpResponse& response) -> Verdict {
        *etag = etag_of(response);
        if (etag->empty()) return {.status = corrupt("the store took a part without an ETag")};
        return {};
      },
      [self = shared_from_this(), i, etag](const Status& status) {
        self->part_done(i, *etag, status);
      });
}

void S3Upload::part_done(std::size_t i, const std::string& etag, const Status& status) {
  Status error;
  bool last = false;
  bool first_failure = false;
  {
    MutexLock lock(mutex_);
    etags_[i] = etag;
    first_failure = !status.is_ok() && error_.is_ok();
    if (first_failure) error_ = status;
    error = error_;
    last = --open_ == 0;
  }
  if (first_failure) stop_source_.request_stop();
  if (!last) return;
  if (error.is_ok()) {
    complete();
  } else {
    abort(error);
  }
}

void S3Upload::complete() {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  {
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < etags_.size(); ++i) {
      xml += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" +
             xml_escape(etags_[i]) + "</ETag></Part>";
    }
  }
  xml += "</CompleteMultipartUpload>";
  Ask ask{.method = "POST", .key = request_.key, .query = {{"uploadId", upload_id_}}};
  auto body = std::make_shared<const std::string>(std::move(xml));
  set_body(ask, body, {0, body->size()});
  ask.headers.emplace_back("content-type", "application/xml");
  if (request_.only_if_absent) ask.headers.emplace_back("if-none-match", "*");
  call(
      "completing the upload of " + name_, std::move(ask),
      [this](const HttpResponse& response) -> Verdict {
        final_etag_ = xml_text(response.text, "ETag").value_or(etag_of(response));
        return {};
      },
      [self = shared_from_this()](const Status& status) {
        if (status.is_ok()) {
          self->end(ObjectInfo{self->request_.body->size(), self->final_etag_});
        } else {
          self->abort(status);
        }
      });
}

void S3Upload::abort(const Status& why) {
  auto step = std::make_shared<Step>();
  step->ask = {.method = "DELETE", .key = request_.key, .query = {{"uploadId", upload_id_}}};
  HttpCall call;
  call.what = "aborting the upload of " + name_;
  call.deadline = port_.now() + kAbortTimeout;
  call.stops_with_store = false;
  call.build = [self = shared_from_this(), step] {
    return self->dialect_.build(step->ask, step->trail);
  };
  call.judge = [self = shared_from_this(), step](HttpResponse& response) -> Verdict {
    if (!response.transport.is_ok()) return {.status = response.transport};
    if (response.head.is_success() || response.head.status == 404) return {};
    return self->dialect_.refuse(step->ask, response, step->trail);
  };
  call.done = [self = shared_from_this(), why](const Status& aborted) {
    self->end(aborted.is_ok()
                  ? why
                  : Status(why.code(), why.message() + "; and its parts could not be removed (" +
                                           aborted.message() + ")"));
  };
  caller_.start(std::move(call));
}

void S3Upload::end(Result<ObjectInfo> result) {
  on_stop_.reset();
  auto done = std::move(done_);
  done(std::move(result));
}

}  // namespace headrace::store
