#!/usr/bin/env bats
# shellcheck disable=SC2030,SC2031  # bats runs each test in a process of its own, which is what we want
# shellcheck disable=SC2034,SC2154  # variables that box.bash sets or reads
# install.sh as it comes with a release: read from a pipe, what it downloads checked against the sums in it.

bats_require_minimum_version 1.5.0
load box

setup() {
  extra=()
  box release 'a home'
  fake_uv
  served=$box/served
  mkdir "$served"
  echo wheel >"$served/memorize_agents-9.9-py3-none-any.whl"
  echo lock >"$served/requirements.txt"
  sed -e "s|^RELEASE_URL=''|RELEASE_URL='https://release.invalid/9.9'|" -e "s|^RELEASE_VERSION=''|RELEASE_VERSION='9.9'|" \
    -e "s|^WHEEL_SHA256=''|WHEEL_SHA256='$(sha256sum <"$served"/*.whl | cut -d' ' -f1)'|" \
    -e "s|^LOCK_SHA256=''|LOCK_SHA256='$(sha256sum <"$served/requirements.txt" | cut -d' ' -f1)'|" \
    "$repo/install.sh" >"$box/install.sh"
}

# A curl (or wget) that serves files of the box by the last part of their address.
fake_curl() {
  fake "$1" <<EOF
for address in "\$@"; do :; done
cat '$served/'"\${address##*/}"
EOF
}

piped() { # piped SHELL [ARGUMENT ...]
  with=$1
  shift
  case $with in
    posh) [ $# -eq 0 ] || fail 'posh takes no arguments for a script from a pipe' ;;
    *) set -- -s -- "$@" ;;
  esac
  # shellcheck disable=SC2016,SC2046
  run env -i HOME="$home" PATH="$path" ${extra[@]+"${extra[@]}"} sh -c 'cat "$0" | "$@"' "$box/install.sh" \
    "$(command -v "${with%% *}")" $(words_after "$with") "$@"
}

@test "read from a pipe by every shell" {
  while IFS= read -r shell; do
    for tool in curl wget; do
      rm -f "$box/fake/curl" "$box/fake/wget"
      fake_curl $tool
      : >"$calls"
      before=$(outside)
      extra=()
      if [ "$shell" = posh ]; then
        extra=(MEMORIZE_AGENTS=codex)
        piped posh
      else
        piped "$shell" --agent codex
      fi
      [ "$status" -eq 0 ] || fail "$shell"
      called 'https://release.invalid/9.9/memorize_agents-9.9-py3-none-any.whl' || fail "$shell: address"
      grep -q 'uv \[tool\] \[install\] .* \[--constraints\] \[.*/requirements.txt\] \[.*/memorize_agents-9.9-py3-none-any.whl\]$' "$calls" || fail "$shell"
      called 'memorize-program [setup] [--agent] [codex]' || fail "$shell"
      [ "$(outside)" = "$before" ] || fail "$shell: something outside the home changed"
      [ -z "$(find "$home" -name 'tmp.*')" ] || fail "$shell: the download is still there"
    done
  done < <(present_shells)
}

@test "a folder that holds a program called sh or a checkout does not mislead a script from a pipe" {
  fake_curl curl
  cd "$repo"
  piped dash
  [ "$status" -eq 0 ] || fail
  called 'memorize_agents-9.9' || fail
}

@test "a file that is not the one it was made for is not installed" {
  fake_curl curl
  for file in "$served"/*; do
    cp "$file" "$box/kept"
    echo more >>"$file"
    : >"$calls"
    piped dash
    [ "$status" -eq 1 ] || fail "$file"
    [[ $output == *'is not the file that this script was made for'*'nothing was installed'*'hint: '* ]] || fail "$file"
    if called '[install]'; then fail "$file: installed"; fi
    cp "$box/kept" "$file"
  done
}

@test "a sum that cannot be computed stops it; it is never skipped" {
  fake_curl curl
  rm "$box/tools/sha256sum"
  piped dash
  [ "$status" -eq 1 ] || fail
  [[ $output == *'sha256'*'hint: '* ]] || fail
  if called '[install]'; then fail installed; fi
}

@test "with neither curl nor wget it says so" {
  piped dash
  [ "$status" -eq 1 ] || fail
  [[ $output == *'neither curl nor wget'*'--from DIR'* ]] || fail
}

@test "a download that fails installs nothing and leaves no file" {
  fake curl <<<'exit 22'
  piped dash
  [ "$status" -eq 1 ] || fail
  [[ $output == *'could not be downloaded'* ]] || fail
  if called '[install]'; then fail installed; fi
  [ -z "$(find "$home" -name 'tmp.*')" ] || fail
}

@test "another address must be https, or this machine" {
  fake_curl curl
  for address in http://release.invalid file:///etc ftp://release.invalid http://127.0.0.1.release.invalid; do
    extra=(MEMORIZE_RELEASE_URL="$address")
    : >"$calls"
    piped dash
    [ "$status" -eq 1 ] || fail "$address"
    [[ $output == *'no https address'* ]] || fail "$address"
    if called 'curl'; then fail "$address: asked"; fi
  done
  extra=(MEMORIZE_RELEASE_URL=http://127.0.0.1:1/x)
  piped dash
  [ "$status" -eq 0 ] || fail
  called 'http://127.0.0.1:1/x/memorize_agents' || fail
}

@test "a copy that belongs to no release says so" {
  cp "$repo/install.sh" "$box/install.sh"
  fake_curl curl
  extra=(MEMORIZE_RELEASE_URL=https://release.invalid)
  piped dash
  [ "$status" -eq 1 ] || fail
  [[ $output == *'belongs to no release'* ]] || fail
}

@test "a folder with all wheels is installed without the network" {
  cp "$served"/*.whl "$box/served/click-8-py3-none-any.whl"
  piped dash --from "$served"
  [ "$status" -eq 0 ] || fail
  called "[--no-index] [--find-links] [$served] [$served/memorize_agents-9.9-py3-none-any.whl]" || fail
  rm "$box/fake/uv"
  fake_python python3 new
  piped dash --from "$served" --version 9.9
  [ "$status" -eq 0 ] || fail
  called "[--no-index] [--find-links] [$served] [--force-reinstall] [$served/memorize_agents-9.9-py3-none-any.whl]" || fail
  piped dash --from "$served" --version 9
  [ "$status" -eq 1 ] || fail
}
