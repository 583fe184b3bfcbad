# Made by cli/package/pack.py for one archive; a release has one `on_macos`/`on_linux` block for each.
class Nudge < Formula
  desc "Memory for coding agents: the right fact, at the right moment, with the reason why"
  homepage "https://github.com/nudge-hints/nudge"
  url "@URL@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  def install
    bin.install "nudge"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/nudge.bash" => "nudge"
    zsh_completion.install "completions/_nudge"
    fish_completion.install "completions/nudge.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/nudge --version")
  end
end
