#!/bin/sh
# Installs memorize for this user, then hands over to `memorize setup`. Asks nothing, needs no root, edits no shell profile.
#
#   ./install.sh [options]                      from a checkout: installs this checkout
#   curl -fsSL ADDRESS/install.sh | sh          from a release: installs its wheel, whose checksum stands below
#   curl -fsSL ADDRESS/install.sh | sh -s -- --dry-run
#
# Everything is a function and the last line is a group, so a download that was cut off anywhere does nothing.

# Where the release lies and what is in it. Filled by scripts/release; empty in a checkout.
RELEASE_URL=''
RELEASE_VERSION=''
WHEEL_SHA256=''
LOCK_SHA256=''

usage() {
  cat <<'EOF'
Usage: install.sh [options] [-- ARGUMENTS OF "memorize setup"]

  --demo             install, then play a recorded session into a temporary store; no agent is set up
  --agent NAME       set up this agent, found or not (may be repeated; claude, codex)
  --agents A,B       the same as a list
  --from DIR         install from this folder: a checkout, or one with wheels (no network when it holds all of them)
  --version X        refuse to install any other version than X
  --dry-run          say what would be done and change nothing
  --no-modify-path   make no link in ~/.local/bin and say nothing about PATH
  --system-certs     trust the system's certificates (for networks that intercept TLS)
  --uninstall        take the hooks out of the agents' settings, then remove the program; memories stay
                     (with "-- --purge" behind it they go, too)
  --help             show this

The same by environment: MEMORIZE_DEMO=1 MEMORIZE_AGENTS=A,B MEMORIZE_FROM=DIR MEMORIZE_VERSION=X MEMORIZE_DRY_RUN=1
MEMORIZE_NO_MODIFY_PATH=1 MEMORIZE_SYSTEM_CERTS=1 MEMORIZE_UNINSTALL=1; MEMORIZE_RELEASE_URL is another place of the release.
EOF
}

say() { printf '%s\n' "$*"; }
warn() { printf 'install: %s\n' "$*" >&2; }
die() {
  warn "$1"
  if [ -n "${2:-}" ]; then printf 'hint: %s\n' "$2" >&2; fi
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# ---- what is asked ---------------------------------------------------------------------------------------------------

add_agents() {
  for agent in $(printf '%s' "$1" | tr ',' ' '); do
    case $agent in
      *[!a-z-]* | -*) die "\"$agent\" is no name of an agent" "use names such as claude or codex" ;;
    esac
    agents="$agents $agent"
  done
}

need() { [ "$2" -ge 2 ] || die "$1 needs a value" "see --help"; }

read_environment() {
  demo=${MEMORIZE_DEMO:-}
  agents=''
  from=${MEMORIZE_FROM:-}
  version=${MEMORIZE_VERSION:-}
  dry_run=${MEMORIZE_DRY_RUN:-}
  no_modify_path=${MEMORIZE_NO_MODIFY_PATH:-}
  system_certs=${MEMORIZE_SYSTEM_CERTS:-}
  uninstall=${MEMORIZE_UNINSTALL:-}
  url=${MEMORIZE_RELEASE_URL:-$RELEASE_URL}
  add_agents "${MEMORIZE_AGENTS:-}"
}

# ---- the ground ------------------------------------------------------------------------------------------------------

check_ground() {
  case $(uname -s 2>/dev/null || echo unknown) in
    MINGW* | MSYS* | CYGWIN*) die "this is Windows" "run install.ps1 in PowerShell instead" ;;
  esac
  [ -n "${HOME:-}" ] || die "HOME is not set" "set it to your home folder and run this again"
  [ -d "$HOME" ] || die "the home folder $HOME does not exist" "set HOME to your home folder and run this again"
  # shellcheck disable=SC2012  # only the owner's number is read, never a name
  owner=$(ls -ldn "$HOME" | awk '{ print $3; exit }')
  if [ "$owner" != "$(id -u)" ]; then
    die "the home folder $HOME belongs to somebody else" "run this as yourself, without sudo"
  fi
  [ -w "$HOME" ] || die "the home folder $HOME is not writable" "mend its rights, or set HOME to a folder of yours"
  data=${XDG_DATA_HOME:-$HOME/.local/share}/memorize-agents
  links=$HOME/.local/bin
}

# Folders that this script makes are noted, so that leaving takes away exactly those.
make_folder() {
  missing=''
  each=$1
  while [ ! -d "$each" ]; do
    missing="$missing$each
"
    each=$(dirname "$each")
  done
  mkdir -p "$1" || die "the folder $1 could not be made" "mend the rights of $each, or set XDG_DATA_HOME to a folder of yours"
  printf '%s' "$missing" >>"$data/made" || die "no file can be made in $data" "mend its rights"
}

make_room() {
  make_folder "$data"
  temp=$(mktemp -d "$data/tmp.XXXXXX") || die "no file can be made in $data" "mend its rights, or set XDG_DATA_HOME"
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  cd "$temp"
}

clean_up() {
  cd "$here" 2>/dev/null || cd /
  if [ -n "${temp:-}" ]; then rm -rf "$temp"; fi
  temp=''
}

# ---- tools -----------------------------------------------------------------------------------------------------------

find_uv() {
  for place in "$(command -v uv 2>/dev/null)" "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" /opt/homebrew/bin/uv \
    /usr/local/bin/uv /home/linuxbrew/.linuxbrew/bin/uv; do
    if [ -n "$place" ] && [ -x "$place" ] && "$place" --version >/dev/null 2>&1; then
      printf '%s' "$place"
      return
    fi
  done
}

# Prints the first Python that is new enough and has what a virtual environment needs.
find_python() {
  for name in python3 python3.11 python3.12 python3.13 python3.14 python; do
    if have "$name" && "$name" -c 'import sys
assert sys.version_info >= (3, 11)
import ensurepip, venv' >/dev/null 2>&1; then
      command -v "$name"
      return
    fi
  done
}

choose_way() {
  uv=$(find_uv)
  python=$(find_python)
  if [ -n "$uv" ]; then
    way=uv
  elif [ -n "$python" ] && have pipx && [ -z "$offline" ]; then
    way=pipx
  elif [ -n "$python" ]; then
    way=venv
  else
    die "neither uv nor Python 3.11 (or newer) with venv was found" \
      "Debian and Ubuntu: apt-get install python3-venv; macOS: brew install uv; elsewhere: install uv, then run this again"
  fi
}

# ---- what is installed -----------------------------------------------------------------------------------------------

is_checkout() { [ -f "$1/pyproject.toml" ] && grep -q '^name = "memorize-agents"$' "$1/pyproject.toml"; }

only_version() { # only_version FOUND
  if [ -n "$version" ] && [ "$version" != "$1" ]; then
    die "version $version was asked for, but this is $1" "take the script of release $version, or leave --version out"
  fi
}

# Sets kind (checkout, wheel, release), source, lock and offline.
find_source() {
  lock='' offline='' kind=''
  case $script in
    install.sh | */install.sh) beside=$(cd "$(dirname "$script")" && pwd) ;;
    *) beside='' ;; # read from a pipe: the folder we stand in means nothing
  esac
  if [ -n "$from" ]; then
    source=$(cd "$from" 2>/dev/null && pwd) || die "the folder $from does not exist" "give --from a checkout or a folder of wheels"
    if is_checkout "$source"; then kind=checkout; else find_wheel; fi
  elif [ -n "$beside" ] && is_checkout "$beside"; then
    kind=checkout
    source=$beside
  elif [ -n "$url" ] && [ -n "$WHEEL_SHA256" ]; then
    kind=release
    source=$url
    only_version "$RELEASE_VERSION"
  else
    die "this copy of the script belongs to no release" "run it inside a checkout, or give --from DIR"
  fi
  if [ "$kind" = checkout ]; then
    only_version "$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$source/memorize/__init__.py")"
    lock=$source/requirements/run.txt
  fi
}

find_wheel() {
  folder=$source
  source=''
  others=0
  for file in "$folder"/*.whl; do
    case $file in
      */memorize_agents-"${version:+$version-}"*.whl) source=$file ;;
      *.whl) if [ -f "$file" ]; then others=$((others + 1)); fi ;;
    esac
  done
  if [ ! -f "$source" ]; then die "$folder holds no wheel of memorize-agents $version" "give --from a checkout or a folder of wheels"; fi
  kind=wheel
  # The program's wheel alone takes its packages from the index; a folder with more wheels has to have all of them.
  if [ "$others" -gt 0 ]; then offline=$folder; fi
}

fetch() { # fetch ADDRESS FILE
  case $1 in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
    *) die "$1 is no https address" "use an address that begins with https://" ;;
  esac
  # Written by the shell: a curl in a sandbox may not be allowed to write here.
  if have curl; then
    curl -fsSL --retry 2 "$1" >"$2" || die "$1 could not be downloaded" "try again; behind a proxy that intercepts TLS, set CURL_CA_BUNDLE"
  elif have wget; then
    wget -qO- "$1" >"$2" || die "$1 could not be downloaded" "try again; behind a proxy that intercepts TLS, set its certificate for wget"
  else
    die "neither curl nor wget was found" "install one of them, or download the release and use --from DIR"
  fi
}

sum_of() {
  if have sha256sum; then
    sha256sum <"$1" | cut -d' ' -f1
  elif have shasum; then
    shasum -a 256 <"$1" | cut -d' ' -f1
  elif have openssl; then
    openssl dgst -sha256 -r <"$1" | cut -d' ' -f1
  else
    die "no program that computes a sha256 sum was found" "install sha256sum, shasum or openssl"
  fi
}

fetch_checked() { # fetch_checked ADDRESS FILE SHA256
  fetch "$1" "$2"
  sum=$(sum_of "$2")
  if [ "$sum" != "$3" ]; then
    die "$1 is not the file that this script was made for (sha256 $sum); nothing was installed" \
      "download the script again; if it stays like this, report it"
  fi
}

fetch_release() {
  wheel=memorize_agents-$RELEASE_VERSION-py3-none-any.whl
  say "downloading $url/$wheel"
  fetch_checked "$url/$wheel" "$temp/$wheel" "$WHEEL_SHA256"
  fetch_checked "$url/requirements.txt" "$temp/requirements.txt" "$LOCK_SHA256"
  source=$temp/$wheel
  lock=$temp/requirements.txt
}

# ---- installing ------------------------------------------------------------------------------------------------------

failed() {
  die "memorize could not be installed by $way (see above)" "behind a proxy that intercepts TLS, try again with --system-certs"
}

use_system_certs() {
  export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1
  for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
    if [ -z "${PIP_CERT:-}" ] && [ -f "$bundle" ]; then export PIP_CERT="$bundle"; fi
  done
}

install_by_uv() {
  bin=$("$uv" tool dir --bin)
  if [ -e "$bin/memorize" ] && ! is_uv_tool; then
    warn "$bin/memorize is another program and is left alone"
    bin=$data/bin
    make_folder "$bin"
    export UV_TOOL_BIN_DIR="$bin"
  fi
  set -- --quiet --python '>=3.11' --compile-bytecode --reinstall
  if [ -n "$offline" ]; then set -- "$@" --no-index --find-links "$offline"; fi
  if [ -n "$lock" ]; then set -- "$@" --constraints "$lock"; fi
  "$uv" tool install "$@" "$source" || failed
  program=$bin/memorize
}

install_by_pipx() {
  pipx install --quiet --force --python "$python" "$source" || failed
  program=$(pipx environment --value PIPX_LOCAL_VENVS)/memorize-agents/bin/memorize
}

pip() { "$data/venv/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "$@"; }

install_by_venv() {
  # A working one is kept while it is renewed: hooks name its interpreter and may run at any moment.
  if ! "$data/venv/bin/python" -m pip --version >/dev/null 2>&1; then "$python" -m venv --clear "$data/venv" || failed; fi
  if [ -n "$offline" ]; then
    pip --no-index --find-links "$offline" --force-reinstall "$source" || failed
  elif [ -n "$lock" ]; then
    pip --require-hashes -r "$lock" || failed
    pip --no-deps --force-reinstall "$source" || failed
  else
    pip --upgrade "$source" || failed
  fi
  program=$data/venv/bin/memorize
  if [ -n "$no_modify_path" ]; then return; fi
  make_folder "$links"
  if [ -e "$links/memorize" ] && [ "$(readlink "$links/memorize")" != "$program" ]; then
    warn "$links/memorize is another program and was left alone; this one is $program"
  else
    ln -sf "$program" "$links/memorize"
    program=$links/memorize
  fi
}

tell_path() {
  if [ -n "$no_modify_path" ]; then return; fi
  found=$(command -v memorize 2>/dev/null) || found=''
  folder=$(dirname "$program")
  if [ -z "$found" ]; then
    case ${SHELL:-} in
      */fish) say "to call it by name: fish_add_path \"$folder\"" ;;
      */nu) say "to call it by name: \$env.PATH ++= [\"$folder\"]   (in config.nu)" ;;
      *) say "to call it by name, add to your shell's profile: export PATH=\"$folder:\$PATH\"" ;;
    esac
  elif [ "$found" != "$program" ] && [ "$found" != "$data/venv/bin/memorize" ]; then
    warn "another memorize comes first on PATH: $found; this one is $program"
  fi
}

install() {
  find_source
  choose_way
  if [ -n "$demo" ]; then next='demo'; else next='setup'; fi
  if [ -n "$dry_run" ]; then
    say "would install memorize from $source by $way"
    if [ "$way" = venv ]; then say "would make $data/venv${no_modify_path:+, and no link}"; fi
    if [ "$way" = venv ] && [ -z "$no_modify_path" ]; then say "would link $links/memorize"; fi
    say "would run: memorize $next${agents:+ for}$agents"
    say "nothing was changed"
    exit 0
  fi
  make_room
  if [ -n "$system_certs" ]; then use_system_certs; fi
  # What the user set for other Pythons must not reach this one.
  unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX VIRTUAL_ENV
  export PIP_USER=0
  if [ "$kind" = release ]; then fetch_release; fi
  say "installing memorize from $source by $way"
  case $way in
    uv) install_by_uv ;;
    pipx) install_by_pipx ;;
    venv) install_by_venv ;;
  esac
  installed=$("$program" --version) || die "$program was installed but does not start" "run it by hand to see why"
  say "installed $installed: $program"
  tell_path
  clean_up
}

# ---- leaving ---------------------------------------------------------------------------------------------------------

is_uv_tool() { "$uv" tool list 2>/dev/null | grep -q '^memorize-agents '; }

find_installed() {
  way='' program=''
  uv=$(find_uv)
  if [ -x "$data/venv/bin/memorize" ]; then
    way=venv
    program=$data/venv/bin/memorize
  elif [ -n "$uv" ] && is_uv_tool; then
    way=uv
    program=$("$uv" tool dir)/memorize-agents/bin/memorize
  elif have pipx && pipx list --short 2>/dev/null | grep -q '^memorize-agents '; then
    way=pipx
    program=$(pipx environment --value PIPX_LOCAL_VENVS)/memorize-agents/bin/memorize
  fi
}

leave() {
  find_installed
  if [ -z "$way" ]; then
    say "memorize is not installed; nothing was changed"
    exit 0
  fi
  if [ -n "$dry_run" ]; then
    say "would run: $program uninstall${1+ $*}"
    say "would remove the program that $way installed"
    say "nothing was changed"
    exit 0
  fi
  # Hooks first: a hook without its program would be worse than a program without hooks.
  "$program" uninstall ${1+"$@"} || die "the hooks could not be taken out, so the program was left in place" "see above, then run this again"
  case $way in
    uv) "$uv" tool uninstall --quiet memorize-agents ;;
    pipx) pipx uninstall memorize-agents ;;
    venv)
      if [ "$(readlink "$links/memorize" 2>/dev/null)" = "$data/venv/bin/memorize" ]; then rm -f "$links/memorize"; fi
      rm -rf "$data/venv"
      ;;
  esac
  if [ -f "$data/made" ]; then
    made=$(sort -r "$data/made")
    rm -f "$data/made"
    # Only folders that this script made, and only when nothing else has moved in.
    printf '%s\n' "$made" | while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || :; done
  fi
  say "memorize was removed"
}

main() { # main SCRIPT [OPTION ...]
  # Where ${1+"$@"} stands for "$@": posh takes the latter for unset when there is nothing in it.
  # zsh under its own name splits no words and calls a function by $0
  if [ -n "${ZSH_VERSION:-}" ]; then emulate sh; fi
  set -eu
  umask 077
  script=$1
  shift
  here=$PWD
  read_environment
  while [ $# -gt 0 ]; do
    case $1 in
      --demo) demo=1 ;;
      --agent | --agents | --from | --version)
        need "$1" $#
        case $1 in
          --from) from=$2 ;;
          --version) version=$2 ;;
          *) add_agents "$2" ;;
        esac
        shift
        ;;
      --agent=* | --agents=*) add_agents "${1#*=}" ;;
      --from=*) from=${1#*=} ;;
      --version=*) version=${1#*=} ;;
      --dry-run) dry_run=1 ;;
      --no-modify-path) no_modify_path=1 ;;
      --system-certs) system_certs=1 ;;
      --uninstall) uninstall=1 ;;
      -h | --help)
        usage
        exit 0
        ;;
      --)
        shift
        break
        ;;
      *) die "there is no option $1" "see --help" ;;
    esac
    shift
  done
  check_ground
  if [ -n "$uninstall" ]; then
    leave ${1+"$@"}
    exit 0
  fi
  install
  if [ -n "$demo" ]; then exec "$program" demo ${1+"$@"}; fi
  for agent in $agents; do set -- --agent "$agent" ${1+"$@"}; done
  exec "$program" setup ${1+"$@"}
}

{
  main "$0" "$@"
  exit
}
