#include "record/events/container.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

namespace tacho::record {
namespace {

namespace fs = std::filesystem;

const std::string kDocker(64, 'a');
const std::string kSibling = std::string(3, 'a') + std::string(61, 'b');
const std::string kCrio(64, 'c');

TEST(Container, TheNameOfACgroupSaysWhichItIs) {
  const std::pair<std::string, std::string> rows[] = {
      {"docker-" + kDocker + ".scope", kDocker},
      {"cri-containerd-" + kDocker + ".scope", kDocker},
      {"crio-" + kDocker + ".scope", kDocker},
      {"libpod-" + kDocker + ".scope", kDocker},
      {kDocker, kDocker},
      {"lxc.payload.web", "web"},
      {"machine-web\\x2d1.scope", "web-1"},
      {"systemd-nspawn@web.service", "web"},
      {"crio-conmon-" + kDocker + ".scope", ""},
      {"libpod-conmon-" + kDocker + ".scope", ""},
      {"session-3.scope", ""},
      {"docker-.scope", ""},
      {"docker.service", ""},
      {"nginx.service", ""},
      {"", ""},
  };
  for (const auto& [cgroup, id] : rows) EXPECT_EQ(container_of(cgroup), id) << cgroup;
}

TEST(Container, PodsAreKnownByTheirUid) {
  EXPECT_EQ(pod_of("kubepods-burstable-pod12ab34cd_56ef.slice"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("kubepods-pod12ab34cd_56ef.slice"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("pod12ab34cd-56ef"), "12ab34cd-56ef");
  EXPECT_EQ(pod_of("machine-libpod_pod_77aa.slice"), "77aa");
  EXPECT_EQ(pod_of("kubepods-burstable.slice"), "");
  EXPECT_EQ(pod_of("podman.service"), "") << "no uid";
  EXPECT_EQ(pod_of("system.slice"), "");
}

class Containers : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tacho-cgroup-XXXXXX").string();
    mount = mkdtemp(pattern.data());
    for (const std::string& name :
         {"system.slice/docker-" + kDocker + ".scope/inner", "system.slice/docker-" + kSibling + ".scope",
          std::string("lxc/web"), std::string("user.slice"),
          "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice/crio-" + kCrio +
              ".scope"})
      fs::create_directories(fs::path(mount) / name);
  }
  void TearDown() override { fs::remove_all(mount); }
  std::string container(const std::string& name) const {
    const auto found = cgroup_of_container(mount, name);
    return found ? *found : "refused: " + found.error().what;
  }
  std::string mount;
};

TEST_F(Containers, AreFoundByTheBeginOfTheirId) {
  EXPECT_EQ(container("aaaa"), "/system.slice/docker-" + kDocker + ".scope");
  EXPECT_EQ(container("aaab"), "/system.slice/docker-" + kSibling + ".scope");
  EXPECT_EQ(container(kDocker), "/system.slice/docker-" + kDocker + ".scope");
  EXPECT_EQ(container("web"), "/lxc/web");
  EXPECT_EQ(
      container("cc"),
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice/crio-" + kCrio + ".scope");
}

TEST_F(Containers, SeveralAreListedAndNoneIsToo) {
  const std::string several = container("aaa");
  EXPECT_NE(several.find("'aaa' is the begin of 2 here"), std::string::npos) << several;
  EXPECT_NE(several.find(kSibling), std::string::npos) << several;
  const std::string none = container("nginx");
  EXPECT_NE(none.find("there is no container 'nginx'"), std::string::npos) << none;
  EXPECT_NE(none.find("web  (/lxc/web)"), std::string::npos) << none;
  EXPECT_NE(container("").find("the name is empty"), std::string::npos);
}

TEST_F(Containers, APodIsTheCgroupOfAllItsContainers) {
  const auto found = cgroup_of_pod(mount, "12-a");
  ASSERT_TRUE(found) << found.error().what;
  EXPECT_EQ(*found, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_ab.slice");
  EXPECT_FALSE(cgroup_of_pod(mount, "99"));
}

}  // namespace
}  // namespace tacho::record
