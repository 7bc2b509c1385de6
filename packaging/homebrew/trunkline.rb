# The formula of a tap; `node scripts/packaging.ts FOLDER` writes it with the version and checksums of the release's archives.
class Trunkline < Formula
  desc "One MCP endpoint for every host, many MCP servers behind it"
  homepage "https://github.com/trunkline/trunkline"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "@RELEASE@/trunkline-darwin-arm64.tar.gz"
      sha256 "@SHA256:darwin-arm64@"
    end
    on_intel do
      url "@RELEASE@/trunkline-darwin-x64.tar.gz"
      sha256 "@SHA256:darwin-x64@"
    end
  end
  on_linux do
    on_arm do
      url "@RELEASE@/trunkline-linux-arm64.tar.gz"
      sha256 "@SHA256:linux-arm64@"
    end
    on_intel do
      url "@RELEASE@/trunkline-linux-x64.tar.gz"
      sha256 "@SHA256:linux-x64@"
    end
  end

  def install
    libexec.install Dir["*"]
    bin.install_symlink libexec/"trunkline"
    generate_completions_from_executable(libexec/"trunkline", "completion")
  end

  service do
    run [opt_bin/"trunkline", "up"]
    keep_alive true
    log_path var/"log/trunkline.log"
    error_log_path var/"log/trunkline.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/trunkline --version")
  end
end
