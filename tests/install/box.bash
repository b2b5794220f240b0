# A box for one run of an install script: a home, a folder of the few programs that the script may use, and fakes of
# uv, pipx, Python, curl and memorize that write down how they were called. Nothing here reaches the network.

repo=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)

# The shells of this machine. Each must understand the script.
present_shells() {
  for shell in dash bash 'bash --posix' 'busybox sh' zsh mksh posh ksh; do
    if command -v "${shell%% *}" >/dev/null; then printf '%s\n' "$shell"; fi
  done
}

# The few programs that the script may use, found once.
tools=()
for name in sh env cat ls awk id uname dirname basename mktemp mkdir rmdir rm cp mv ln readlink sed grep cut tr sort \
  sha256sum chmod touch printf; do
  tools+=("$(type -P "$name")")
done

# box NAME HOME: makes $box with tools/, fake/ and the home; sets $home, $calls and the PATH that the script gets.
box() {
  box=$BATS_TEST_TMPDIR/$1
  rm -rf "$box"
  home=$box/$2
  calls=$box/calls
  mkdir -p "$box/tools" "$box/fake" "$home"
  : >"$calls"
  ln -s "${tools[@]}" "$box/tools"
  path=$box/fake:$box/tools
}

# fake NAME: reads the body of a script that is called NAME inside the box.
fake() {
  {
    printf '#!/bin/sh\ncalls=%s\n' "'$calls'"
    # shellcheck disable=SC2016
    printf 'printf "%%s" "%s" >>"$calls"; for word in "$@"; do printf " [%%s]" "$word" >>"$calls"; done; echo >>"$calls"\n' "$1"
    cat
  } >"$box/fake/$1"
  chmod +x "$box/fake/$1"
}

# A program that stands for the installed memorize; the other fakes copy it to where they "install".
fake_memorize() {
  fake memorize-program <<'EOF'
case $1 in
  --version) echo 'memorize, version 9.9' ;;
  uninstall) exit "${FAKE_UNINSTALL_STATUS:-0}" ;;
esac
EOF
}

fake_uv() {
  fake_memorize
  fake uv <<EOF
bin=\${UV_TOOL_BIN_DIR:-\$HOME/.local/bin}
tools=\$HOME/.local/share/uv/tools
case "\$1 \${2:-} \${3:-}" in
  '--version  ') echo 'uv 0' ;;
  'tool dir --bin') echo "\$bin" ;;
  'tool dir ') echo "\$tools" ;;
  'tool list ') if [ -d "\$tools/memorize-agents" ]; then echo 'memorize-agents v9.9'; fi ;;
  'tool install '*)
    [ -z "\${FAKE_INSTALL_FAILS:-}" ] || exit 1
    mkdir -p "\$bin" "\$tools/memorize-agents/bin"
    cp '$box/fake/memorize-program' "\$tools/memorize-agents/bin/memorize"
    ln -sf "\$tools/memorize-agents/bin/memorize" "\$bin/memorize"
    ;;
  'tool uninstall '*) rm -rf "\$tools/memorize-agents" "\$bin/memorize" ;;
esac
EOF
}

# fake_python NAME new|old|bare: a Python that is new enough, too old, or without venv.
fake_python() {
  fake_memorize
  fake "$1" <<EOF
kind=$2
case \$1 in
  -c) [ \$kind = new ] || exit 1 ;;
  -m)
    case \$2 in
      venv)
        [ -z "\${FAKE_INSTALL_FAILS:-}" ] || exit 1
        for folder in "\$@"; do :; done
        mkdir -p "\$folder/bin"
        cp "\$0" "\$folder/bin/python"
        ;;
      pip)
        case \$0 in
          */venv/bin/python) ;;
          *) echo 'error: externally-managed-environment' >&2; exit 1 ;;
        esac
        case " \$* " in *' install '*) cp '$box/fake/memorize-program' "\$(dirname "\$0")/memorize" ;; esac
        ;;
    esac
    ;;
esac
EOF
}

# install_in SHELL [ARGUMENT ...]: runs the checkout's script with nothing but the box around it.
install_in() {
  with=$1
  shift
  # shellcheck disable=SC2046,SC2154  # a shell may be two words; the test sets extra
  run env -i HOME="$home" PATH="$path" SHELL=/bin/sh LC_ALL=C.UTF-8 ${extra[@]+"${extra[@]}"} \
    "$(command -v "${with%% *}")" $(words_after "$with") "${script:-$repo/install.sh}" "$@" </dev/null
}

words_after() {
  case $1 in
    *' '*) printf '%s' "${1#* }" ;;
  esac
}

# What lies in a folder, with contents: two equal pictures mean that nothing changed.
picture() {
  (cd "$1" && find . -path ./calls -prune -o -printf '%p %y %m %l\n' -type f -exec sha256sum {} + | LC_ALL=C sort)
}

# The same for everything but the home.
outside() { picture "$box" | grep -vF "./${home#"$box"/}"; }

# Says which shell a step failed in, since one test runs through all of them.
fail() {
  printf '%s\n--- status %s, output:\n%s\n--- calls:\n' "$*" "${status:-}" "${output:-}" >&2
  cat "$calls" >&2
  return 1
}

called() { grep -qF -- "$1" "$calls"; }
