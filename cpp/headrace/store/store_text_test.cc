// Everything the stores parse: headers, error documents, configuration files, URLs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/store/http_message.h"
#include "headrace/store/ini_file.h"
#include "headrace/store/s3_credentials.h"
#include "headrace/store/s3_error.h"
#include "headrace/store/store_test_util.h"
#include "headrace/store/url.h"

namespace headrace::store {
namespace {

using std::chrono::seconds;

TEST(ContentRange, TakesTheThreeFormsAndNothingElse) {
  const auto full = parse_content_range("bytes 0-9/100");
  ASSERT_TRUE(full.is_ok());
  EXPECT_EQ(full->first_last, (std::pair<std::uint64_t, std::uint64_t>(0, 9)));
  EXPECT_EQ(full->size, 100U);
  EXPECT_FALSE(parse_content_range("bytes 5-5/*")->size.has_value());
  EXPECT_FALSE(parse_content_range("bytes */7")->first_last.has_value());
  EXPECT_TRUE(parse_content_range("bytes 0-18446744073709551613/18446744073709551614").is_ok());
  for (const char* hostile :
       {"", "bytes", "bytes ", "bytes 0-9", "bytes 9-0/100", "bytes 0-100/100", "bytes */*",
        "bytes -5/10", "bytes 0-/10", "bytes 0-9/1e3", "bytes 0-9/+100", "items 0-9/100",
        "bytes 0-9/99999999999999999999", "bytes 0-18446744073709551615/*", "bytes 0-9/100,",
        "bytes 0-9/100/100", "bytes 0x0-9/100", "bytes 0 - 9/100"}) {
    EXPECT_EQ(parse_content_range(hostile).status().code(), Code::kCorrupt) << hostile;
  }
}

TEST(HeadLine, ParsesAnswersAndRefusesNonsense) {
  HttpHead head;
  ASSERT_TRUE(parse_head_line("HTTP/1.1 100 Continue\r\n", head).is_ok());
  ASSERT_TRUE(parse_head_line("\r\n", head).is_ok());
  ASSERT_TRUE(parse_head_line("HTTP/1.1 206\r\n", head).is_ok());
  ASSERT_TRUE(parse_head_line("ETag:  \"x\" \r\n", head).is_ok());
  EXPECT_EQ(head.status, 206);
  EXPECT_EQ(*head.find("etag"), "\"x\"");
  for (const char* hostile : {"HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 099 x", "HTTP/1.1 2x6 y",
                              "HTTP/1.1 2060", ": value", "no colon", "bad name: x", "a\tb: x"}) {
    EXPECT_EQ(parse_head_line(hostile, head).code(), Code::kCorrupt) << hostile;
  }
  Status last;
  for (int i = 0; i < 1000 && last.is_ok(); ++i) last = parse_head_line("a: b", head);
  EXPECT_EQ(last.code(), Code::kCorrupt);
}

TEST(HttpDate, ReadsTheFixedFormOnly) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  for (const char* hostile : {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                              "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
                              "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 29 Feb 1995 08:49:37 GMT",
                              "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_http_date(hostile).has_value()) << hostile;
  }
}

TEST(RetryAfter, IsBoundedWhateverIsAskedFor) {
  EXPECT_EQ(parse_retry_after("7", 0), Duration(seconds(7)));
  EXPECT_EQ(parse_retry_after(" 0 ", 0), Duration(0));
  EXPECT_EQ(parse_retry_after("99999999999", 0), Duration(seconds(3600)));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111770), Duration(seconds(7)));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111800), Duration(0));
  for (const char* hostile : {"", "-1", "soon", "1.5", "99999999999999999999999"}) {
    EXPECT_FALSE(parse_retry_after(hostile, 0).has_value()) << hostile;
  }
}

TEST(ETag, OnlyStrongOnesAreSentBack) {
  EXPECT_TRUE(is_strong_etag("\"abc-1\""));
  for (const char* weak : {"", "W/\"abc\"", "abc", "\"", "\"a\"b\"", "\"a\nb\"", "\"a b\""}) {
    EXPECT_FALSE(is_strong_etag(weak)) << weak;
  }
}

TEST(S3ErrorDocument, IsReadWithoutTrustingIt) {
  const S3Error error = parse_s3_error(
      "<?xml version=\"1.0\"?>\n<!-- a > b --><s3:Error xmlns:s3=\"urn:x\"><s3:Code>NoSuchKey"
      "</s3:Code><s3:Message>a &lt; b &#x41;&#66;</s3:Message><Region>eu-west-1</Region>"
      "</s3:Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "a < b AB");
  EXPECT_EQ(error.region, "eu-west-1");
  EXPECT_EQ(xml_text("<A><B><C>x</C></B></A>", "B"), std::nullopt);
  EXPECT_EQ(xml_text("<A><B/><B>y</B></A>", "B"), "y");
  for (const char* hostile :
       {"", "<", "<Error", "<Error>", "<Error><Code>", "<Error><Code>x", "<Error><Code>x</Message>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><Error><Code>&a;</Code></Error>",
        "<Error><Code>&bogus;</Code></Error>", "<Error><Code>&#0;</Code></Error>",
        "<Error><Code>&#xd800;</Code></Error>", "<Error><Code>&#99999999;</Code></Error>",
        "<Error><Code>&amp</Code></Error>", "<!-- <Error><Code>x</Code></Error>", "not xml",
        "<html><Error><Code>x</Code></Error></html>"}) {
    EXPECT_EQ(parse_s3_error(hostile).code, "") << hostile;
  }
  const std::string long_message =
      parse_s3_error("<Error><Message>" + std::string(9999, 'm') + "</Message></Error>").message;
  EXPECT_EQ(long_message.size(), 300U);
}

TEST(S3Meaning, ClassifiesByCodeFirstAndStatusSecond) {
  EXPECT_EQ(s3_meaning(503, "SlowDown").code, Code::kThrottled);
  EXPECT_EQ(s3_meaning(400, "RequestTimeout").code, Code::kUnavailable);
  EXPECT_EQ(s3_meaning(400, "ThrottlingException").code, Code::kThrottled);
  EXPECT_EQ(s3_meaning(409, "ConditionalRequestConflict").code, Code::kUnavailable);
  EXPECT_EQ(s3_meaning(403, "").code, Code::kDenied);
  EXPECT_EQ(s3_meaning(404, "").code, Code::kNotFound);
  EXPECT_EQ(s3_meaning(429, "").code, Code::kThrottled);
  EXPECT_EQ(s3_meaning(500, "Unheard").code, Code::kUnavailable);
  EXPECT_EQ(s3_meaning(418, "").code, Code::kInvalidArgument);
  for (int status = 300; status < 600; ++status) {
    EXPECT_NE(s3_meaning(status, "").code, Code::kOk);
    EXPECT_NE(s3_meaning(status, "").code, Code::kInternal);
  }
}

TEST(IniFile, ReadsWhatTheToolsWrite) {
  const auto file = parse_ini(
      "\xef\xbb\xbf# comment\n[default]\r\nregion = eu-west-1\n; more\n"
      "[profile  my own]\nAWS_Access_Key_ID=AK=ID\ns3 =\n  addressing_style = path\n"
      "\tmax = 3\nendpoint_url = http://h:1/x\n[empty]\n");
  ASSERT_TRUE(file.is_ok()) << file.status().to_string();
  EXPECT_EQ(file->at("default").at("region"), "eu-west-1");
  EXPECT_EQ(file->at("profile my own").at("aws_access_key_id"), "AK=ID");
  EXPECT_EQ(file->at("profile my own").at("s3.addressing_style"), "path");
  EXPECT_EQ(file->at("profile my own").at("endpoint_url"), "http://h:1/x");
  EXPECT_TRUE(file->at("empty").empty());
  const std::string nul("[a]\nb = \0\n", 10);
  for (const std::string& hostile :
       {std::string("a = b"), std::string("[a\nb = c"), std::string("[]\n"),
        std::string("[a]\nSECRETWORD\n"), std::string("[a]\n= b"), nul,
        std::string(kIniBytesMax + 1, '#')}) {
    const Status status = parse_ini(hostile).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << hostile.substr(0, 50);
    EXPECT_EQ(status.message().find("SECRETWORD"), std::string::npos);
  }
}

// Two shared files in a directory of their own, and the environment that names them.
struct Shared : Bench {
  Shared() {
    std::string name = (std::filesystem::temp_directory_path() / "headrace-aws-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    dir = name;
    env = {{"AWS_SHARED_CREDENTIALS_FILE", dir + "/credentials"},
           {"AWS_CONFIG_FILE", dir + "/config"}};
  }
  ~Shared() { std::filesystem::remove_all(dir); }
  void write(const std::string& file, const std::string& text) {
    std::ofstream(dir + "/" + file) << text;
  }
  Result<S3Identity> find() { return find_s3_identity(options, deps()); }

  std::string dir;
  StoreOptions options;
};

TEST(S3Identity, TakesKeysInTheOrderOfTheTools) {
  Shared shared;
  shared.write("credentials",
               "[default]\naws_access_key_id=D\naws_secret_access_key=ds\n"
               "[p]\naws_access_key_id=P\naws_secret_access_key=ps\naws_session_token=pt\n");
  shared.write("config",
               "[default]\nregion=r-default\n[profile p]\nregion=r-p\n"
               "endpoint_url=http://h\ns3=\n  addressing_style=virtual\n");
  EXPECT_EQ(shared.find()->keys->access_key, "D");
  EXPECT_EQ(shared.find()->region, "r-default");
  shared.env["AWS_PROFILE"] = "p";
  EXPECT_EQ(shared.find()->keys->session_token, "pt");
  EXPECT_EQ(shared.find()->region, "r-p");
  EXPECT_EQ(shared.find()->endpoint, "http://h");
  EXPECT_EQ(shared.find()->addressing, "virtual");
  shared.env["AWS_ACCESS_KEY_ID"] = "E";
  shared.env["AWS_SECRET_ACCESS_KEY"] = "es";
  shared.env["AWS_REGION"] = "r-env";
  EXPECT_EQ(shared.find()->keys->access_key, "E");
  EXPECT_EQ(shared.find()->region, "r-env");
  // A profile that the caller names wins over keys of the environment.
  shared.options.profile = "p";
  shared.options.region = "r-option";
  EXPECT_EQ(shared.find()->keys->access_key, "P");
  EXPECT_EQ(shared.find()->region, "r-option");
  shared.options.anonymous = true;
  EXPECT_FALSE(shared.find()->keys.has_value());
}

TEST(S3Identity, FallsBackToHomeAndToTheDefaultRegion) {
  Shared shared;
  std::filesystem::create_directories(shared.dir + "/.aws");
  shared.write(".aws/credentials", "[default]\naws_access_key_id=H\naws_secret_access_key=hs\n");
  shared.env = {{"HOME", shared.dir}};
  EXPECT_EQ(shared.find()->keys->access_key, "H");
  EXPECT_EQ(shared.find()->region, "us-east-1");
}

TEST(S3Identity, SaysWhatIsMissingOrNotSupported) {
  Shared shared;
  expect_error(shared.find().status(), Code::kDenied,
               {"AWS_ACCESS_KEY_ID", shared.dir + "/credentials", "anonymous"});
  shared.options.profile = "nobody";
  expect_error(shared.find().status(), Code::kInvalidArgument, {"nobody", shared.dir + "/config"});
  shared.options.profile.reset();
  const std::pair<const char*, const char*> kFetched[] = {
      {"role_arn=arn:x\nsource_profile=y", "assumed role"},
      {"credential_process=/bin/x", "a process"},
      {"sso_session=s", "single sign-on"},
      {"web_identity_token_file=/x", "web identity"},
  };
  for (const auto& [lines, what] : kFetched) {
    shared.write("config", std::string("[default]\n") + lines + "\n");
    expect_error(shared.find().status(), Code::kUnimplemented, {what, "default"});
  }
  shared.env["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/x";
  expect_error(shared.find().status(), Code::kUnimplemented, {"AWS_WEB_IDENTITY_TOKEN_FILE"});
  shared.env["AWS_ACCESS_KEY_ID"] = "only";
  expect_error(shared.find().status(), Code::kInvalidArgument, {"only one of"});
  shared.env["AWS_SECRET_ACCESS_KEY"] = "sec\nret";
  const Status bad = shared.find().status();
  expect_error(bad, Code::kInvalidArgument, {"control character"});
  EXPECT_EQ(bad.message().find("sec\nret"), std::string::npos);
  shared.write("credentials", "[default]\naws_secret_access_key TOPSECRET\n");
  const Status broken = shared.find().status();
  expect_error(broken, Code::kInvalidArgument, {shared.dir + "/credentials", "line 2"});
  EXPECT_EQ(broken.message().find("TOPSECRET"), std::string::npos);
}

TEST(Url, IsTakenApartAndResolved) {
  const auto url = parse_http_url("HTTPS://Host.Example:443/a%20b/c?x=1");
  ASSERT_TRUE(url.is_ok());
  EXPECT_EQ(url->without_query(), "https://host.example/a%20b/c");
  EXPECT_EQ(url->query, "x=1");
  EXPECT_EQ(parse_http_url("http://[::1]:8080/")->authority(), "[::1]:8080");
  EXPECT_EQ(resolve(*url, "d?y")->without_query(), "https://host.example/a%20b/d");
  EXPECT_EQ(resolve(*url, "/d")->without_query(), "https://host.example/d");
  EXPECT_EQ(resolve(*url, "//o/d")->without_query(), "https://o/d");
  EXPECT_FALSE(same_origin(*url, *resolve(*url, "http://host.example/")));
  for (const char* hostile : {"", "http", "http:/x", "http://", "http:///x", "http://h:/x",
                              "http://h:0/x", "http://h:65536/", "http://[::1/", "http://[::1]x/",
                              "http://u:p@h/", "http://h\r\nx/", "http://h\\x/", "ftp://h/"}) {
    EXPECT_EQ(parse_http_url(hostile).status().code(), Code::kInvalidArgument) << hostile;
  }
  for (const char* hostile : {"%", "%4", "a%zz", "%%41"}) {
    EXPECT_FALSE(percent_decode(hostile).is_ok()) << hostile;
  }
}

}  // namespace
}  // namespace headrace::store
