#!/usr/bin/env bats
# install.sh in every shell of this machine, with fakes around it.
# shellcheck disable=SC2030,SC2031  # bats runs each test in a process of its own, which is what we want
# shellcheck disable=SC2034,SC2154  # variables that box.bash sets or reads

bats_require_minimum_version 1.5.0
load box

setup() {
  extra=()
  script=
}

# in_every_shell FUNCTION: runs it with the name of each shell.
in_every_shell() {
  while IFS= read -r shell; do
    "$1" "$shell" # no "||" here: it would switch off errexit inside
  done < <(present_shells)
}

@test "the shells of this machine" {
  present_shells | tr '\n' ',' | sed 's/,$//; s/,/, /g; s/^/# shells: /' >&3
  echo >&3
  [ "$(present_shells | wc -l)" -ge 2 ]
}

by_uv_in_odd_homes() {
  for name in plain 'with space' 'mit ö und 한글' "with'quote"; do
    box by-uv "$name"
    fake_uv
    before=$(outside)
    install_in "$1" --agents claude,codex -- --extractor rules
    [ "$status" -eq 0 ] || fail "$1, home $name"
    called "uv [tool] [install] [--quiet] [--python] [>=3.11] [--compile-bytecode] [--reinstall] [--constraints] [$repo/requirements/run.txt] [$repo]" || fail "$1: install"
    called 'memorize-program [setup] [--agent] [codex] [--agent] [claude] [--extractor] [rules]' || fail "$1: setup"
    [ "$(outside)" = "$before" ] || fail "$1: something outside the home changed"
    [ -z "$(find "$home" -name 'tmp.*')" ] || fail "$1: the temporary folder is still there"
  done
}
@test "by uv, in homes with spaces, quotes and letters of other alphabets" { in_every_shell by_uv_in_odd_homes; }

by_venv() {
  box by-venv 'a home'
  fake_python python3 new
  before=$(outside)
  install_in "$1" --agent claude
  [ "$status" -eq 0 ] || fail "$1"
  called "[-m] [venv] [--clear] [$home/.local/share/memorize-agents/venv]" || fail "$1: venv"
  called "[--require-hashes] [-r] [$repo/requirements/run.txt]" || fail "$1: hashes"
  called "[--no-deps] [--force-reinstall] [$repo]" || fail "$1: the checkout"
  called 'memorize-program [setup] [--agent] [claude]' || fail "$1: setup"
  [ "$(readlink "$home/.local/bin/memorize")" = "$home/.local/share/memorize-agents/venv/bin/memorize" ] || fail "$1: link"
  [ "$(outside)" = "$before" ] || fail "$1: something outside the home changed"
}
@test "by a virtual environment where there is no uv" { in_every_shell by_venv; }

@test "an installation that works is renewed in place, so that hooks always find their interpreter" {
  box twice home
  fake_python python3 new
  install_in dash
  : >"$calls"
  install_in dash
  [ "$status" -eq 0 ] || fail second
  if called '[venv] [--clear]'; then fail 'the environment was cleared'; fi
  called '[--force-reinstall]' || fail 'not renewed'
}

@test "pipx is used when there is no uv, with a Python that is new enough" {
  box pipx home
  fake_python python3 new
  fake pipx <<EOF
venvs=\$HOME/pipx
case \$1 in
  install) mkdir -p "\$venvs/memorize-agents/bin" && cp '$box/fake/memorize-program' "\$venvs/memorize-agents/bin/memorize" ;;
  environment) echo "\$venvs" ;;
esac
EOF
  install_in dash
  [ "$status" -eq 0 ] || fail
  called "pipx [install] [--quiet] [--force] [--python] [$box/fake/python3] [$repo]" || fail
  called 'memorize-program [setup]' || fail
}

old_python() {
  for kind in old bare; do
    box old home
    fake_python python3 "$kind"
    before=$(picture "$box")
    install_in "$1"
    [ "$status" -eq 1 ] || fail "$1"
    [[ $output == *'neither uv nor Python 3.11'*$'\n''hint: '* ]] || fail "$1: the remedy"
    [ "$(picture "$box")" = "$before" ] || fail "$1: something changed"
  done
}
@test "with an old Python or one without venv it says what to install and changes nothing" { in_every_shell old_python; }

@test "a newer Python under another name is found" {
  box other home
  fake_python python3 old
  fake_python python3.13 new
  install_in dash
  [ "$status" -eq 0 ] || fail
  called 'python3.13 [-m] [venv]' || fail
}

@test "a Python that is managed by the system is never installed into" {
  box marked home
  fake_python python3 new # its own pip fails as one with the marker does
  install_in dash
  [ "$status" -eq 0 ] || fail
  if grep -E -- '--break-system-packages|\[--user\]' "$calls"; then fail 'forced'; fi
  if grep -E '^python3 \[-m\] \[pip\]' "$calls" | grep -F '[install]' | grep -vF -e '[-r]' -e "[$repo]"; then fail; fi
}

@test "what is installed is always a path, never a name in an index" {
  box path home
  fake_uv
  install_in dash
  fake_python python3 new
  rm "$box/fake/uv"
  install_in dash
  [ "$(grep -c '\[install\]' "$calls")" -ge 3 ] || fail
  if grep -F '[install]' "$calls" | grep -vE "\[-r\] \[$repo/requirements/run.txt\]$|\[$repo\]$"; then fail 'a bare name'; fi
}

unwritable_home() {
  box unwritable home
  fake_uv
  : >"$home/.local" # a file where the folder has to go: nobody can make it, root neither
  before=$(picture "$box")
  install_in "$1"
  [ "$status" -eq 1 ] || fail "$1"
  [[ $output == *'could not be made'*'hint: '* ]] || fail "$1: the remedy"
  [ "$(picture "$box")" = "$before" ] || fail "$1: something changed"
}
@test "a home in which no folder can be made" { in_every_shell unwritable_home; }

@test "a home that is read-only" {
  box readonly home
  fake_uv
  chmod 500 "$home"
  if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null || skip 'needs setpriv to stop being root'
    chown 65534 "$home"
    chmod -R o+rX "$box/tools" "$box/fake"
    chmod o+rx "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/* "$BATS_TEST_TMPDIR" "$box"
    chmod o+w "$calls"
    cp "$repo/install.sh" "$box/install.sh"
    chmod o+r "$box/install.sh"
    before=$(picture "$box")
    run env -i HOME="$home" PATH="$path" "$(command -v setpriv)" --reuid=65534 --regid=65534 --clear-groups sh "$box/install.sh" --from "$box"
  else
    before=$(picture "$box")
    install_in dash
  fi
  [ "$status" -eq 1 ] || fail
  [[ $output == *'is not writable'*'hint: '* ]] || fail
  [ "$(picture "$box")" = "$before" ] || fail 'something changed'
}

@test "a home of somebody else is refused: that is sudo with the wrong home" {
  [ "$(id -u)" = 0 ] || skip 'only root can give a folder away'
  box sudo home
  fake_uv
  chown 65534 "$home"
  install_in dash
  [ "$status" -eq 1 ] || fail
  [[ $output == *'belongs to somebody else'*'without sudo'* ]] || fail
}

@test "no home at all" {
  box nohome home
  fake_uv
  run env -i PATH="$path" "$(command -v dash)" "$repo/install.sh"
  [ "$status" -eq 1 ] || fail
  [[ $output == *'HOME is not set'* ]] || fail
}

no_terminal() {
  box terminal home
  fake_uv
  # shellcheck disable=SC2046  # a shell may be two words
  run setsid -w env -i HOME="$home" PATH="$path" "$(command -v "${1%% *}")" $(words_after "$1") "$repo/install.sh" <&-
  [ "$status" -eq 0 ] || fail "$1"
  called 'memorize-program [setup]' || fail "$1"
}
@test "without a terminal and without standard input" { in_every_shell no_terminal; }

dry_run() {
  for tool in uv venv; do
    box dry 'my home'
    if [ $tool = uv ]; then fake_uv; else fake_python python3 new; fi
    before=$(picture "$box")
    install_in "$1" --dry-run --agent claude
    [ "$status" -eq 0 ] || fail "$1"
    [[ $output == *'nothing was changed' ]] || fail "$1"
    [ "$(picture "$box")" = "$before" ] || fail "$1: something changed"
    if called '[install]'; then fail "$1: installed"; fi
  done
}
@test "a dry run changes nothing" { in_every_shell dry_run; }

demo() {
  box demo home
  fake_uv
  install_in "$1" --demo
  [ "$status" -eq 0 ] || fail "$1"
  [ "$(tail -n 1 "$calls")" = 'memorize-program [demo]' ] || fail "$1"
  if called '[setup]'; then fail "$1: an agent was set up"; fi
}
@test "the demo installs, plays, and sets up no agent" { in_every_shell demo; }

@test "every option has a variable that does the same" {
  for pair in --demo=MEMORIZE_DEMO --dry-run=MEMORIZE_DRY_RUN --no-modify-path=MEMORIZE_NO_MODIFY_PATH \
    --system-certs=MEMORIZE_SYSTEM_CERTS --uninstall=MEMORIZE_UNINSTALL; do
    box flag home
    fake_python python3 new
    install_in dash "${pair%%=*}"
    flag=$output$(cat "$calls")
    box flag home
    fake_python python3 new
    extra=("${pair#*=}=1")
    install_in dash
    extra=()
    [ "$flag" = "$output$(cat "$calls")" ] || fail "$pair"
  done
  box flag home
  fake_uv
  extra=("MEMORIZE_AGENTS=codex,claude" MEMORIZE_FROM="$repo" MEMORIZE_VERSION=0.0.1)
  install_in dash --version "$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$repo/memorize/__init__.py")"
  [ "$status" -eq 0 ] || fail
  called 'memorize-program [setup] [--agent] [claude] [--agent] [codex]' || fail
}

@test "without changing PATH there is no link and no advice" {
  box nopath home
  fake_python python3 new
  install_in dash --no-modify-path
  [ "$status" -eq 0 ] || fail
  [ ! -e "$home/.local/bin" ] || fail 'a link'
  [[ $output != *PATH* ]] || fail 'advice'
}

@test "the line for PATH suits the shell" {
  # shellcheck disable=SC2016  # the line for nushell holds a dollar
  for pair in /bin/zsh='export PATH=' /usr/bin/fish=fish_add_path /usr/bin/nu='$env.PATH'; do
    box advice home
    fake_uv
    extra=(SHELL="${pair%%=*}")
    install_in dash
    [[ $output == *"${pair#*=}"* ]] || fail "$pair"
  done
}

wrong_words() {
  box wrong home
  fake_uv
  before=$(picture "$box")
  for words in --frobnicate --agent --from '--agent Claude' '--agent ../x' '--version' '--from /does/not/exist' '--version 0.0.1' "--from $home"; do
    # shellcheck disable=SC2086
    install_in "$1" $words
    [ "$status" -eq 1 ] || fail "$1: $words"
    [[ $output == install:*'hint: '* ]] || fail "$1: $words"
  done
  [ "$(picture "$box")" = "$before" ] || fail "$1: something changed"
}
@test "a wrong option, a missing value, a wrong version: refused before anything happens" { in_every_shell wrong_words; }

@test "help needs nothing and changes nothing" {
  box help home
  install_in dash --help
  [ "$status" -eq 0 ] || fail
  for option in --demo --agent --agents --from --version --dry-run --no-modify-path --system-certs --uninstall; do
    [[ $output == *"$option"* ]] || fail "$option"
  done
}

@test "a failure of the installer is told with its remedy, and nothing is set up" {
  for tool in uv venv; do
    box failing home
    if [ $tool = uv ]; then fake_uv; else fake_python python3 new; fi
    extra=(FAKE_INSTALL_FAILS=1)
    install_in dash
    [ "$status" -eq 1 ] || fail
    [[ $output == *"could not be installed by $tool"*--system-certs* ]] || fail
    if called '[setup]'; then fail 'set up'; fi
    [ -z "$(find "$home" -name 'tmp.*')" ] || fail 'the temporary folder is still there'
  done
}

shadowed() {
  box shadowed home
  fake_uv
  mkdir -p "$home/.local/bin"
  echo 'somebody else' >"$home/.local/bin/memorize"
  install_in "$1"
  [ "$status" -eq 0 ] || fail "$1"
  [ "$(cat "$home/.local/bin/memorize")" = 'somebody else' ] || fail "$1: overwritten"
  [[ $output == *'another program and is left alone'* ]] || fail "$1"
  called 'memorize-program [setup]' || fail "$1"

  box shadowed home
  fake_python python3 new
  mkdir -p "$home/.local/bin"
  echo 'somebody else' >"$home/.local/bin/memorize"
  install_in "$1"
  [ "$status" -eq 0 ] || fail "$1"
  [ "$(cat "$home/.local/bin/memorize")" = 'somebody else' ] || fail "$1: overwritten"
  called 'memorize-program [setup]' || fail "$1"
}
@test "another program of the same name is left alone" { in_every_shell shadowed; }

@test "another memorize that comes first on PATH is named" {
  box first home
  fake_uv
  fake memorize <<<''
  install_in dash
  [ "$status" -eq 0 ] || fail
  [[ $output == *"another memorize comes first on PATH: $box/fake/memorize"* ]] || fail
  [ "$(tail -n 1 "$calls")" = 'memorize-program [setup]' ] || fail 'the wrong one was set up'
}

leaving() {
  for tool in uv venv; do
    box leaving home
    if [ $tool = uv ]; then fake_uv; else fake_python python3 new; fi
    mkdir -p "$home/.config"
    echo mine >"$home/.config/mine"
    before=$(picture "$home" | grep -vE 'uv|\./\.local(/share|/bin)? d')
    install_in "$1"
    [ "$status" -eq 0 ] || fail "$1 $tool"
    : >"$calls"
    install_in "$1" --uninstall -- --purge
    [ "$status" -eq 0 ] || fail "$1 $tool"
    called 'memorize-program [uninstall] [--purge]' || fail "$1 $tool: hooks"
    after=$(picture "$home" | grep -vE 'uv|\./\.local(/share|/bin)? d')
    [ "$after" = "$before" ] || fail "$1 $tool: $after"
    if [ $tool = venv ]; then [ ! -e "$home/.local" ] || fail "$1: empty folders stayed"; fi
    install_in "$1" --uninstall
    [[ $output == *'not installed'* ]] || fail "$1 $tool: twice"
  done
}
@test "leaving takes the hooks out first and gives the home back" { in_every_shell leaving; }

@test "when the hooks cannot be taken out, the program stays" {
  for tool in uv venv; do
    box staying home
    if [ $tool = uv ]; then fake_uv; else fake_python python3 new; fi
    install_in dash
    extra=(FAKE_UNINSTALL_STATUS=30)
    install_in dash --uninstall
    extra=()
    [ "$status" -eq 1 ] || fail "$tool"
    [ -x "$home/.local/bin/memorize" ] || fail "$tool: removed"
  done
}

@test "folders that others use meanwhile are left" {
  box shared home
  fake_python python3 new
  install_in dash
  echo other >"$home/.local/bin/other"
  install_in dash --uninstall
  [ "$status" -eq 0 ] || fail
  [ -f "$home/.local/bin/other" ] || fail
  [ ! -e "$home/.local/share" ] || fail
}
