# Installs memorize for this user, then hands over to "memorize setup". Asks nothing, needs no administrator, edits no
# file and no registry key. Works in Windows PowerShell 5.1 and in PowerShell 7.
#
#   powershell -ExecutionPolicy Bypass -File install.ps1 [options]      from a checkout: installs this checkout
#   powershell -ExecutionPolicy Bypass -c "irm ADDRESS/install.ps1 | iex"      from a release
#
# Options may also be given by environment, which is the only way for the second form; -Help lists both.
param(
    [switch]$Demo,
    [string[]]$Agent = @(),
    [string[]]$Agents = @(),
    [string]$From = '',
    [string]$Version = '',
    [switch]$DryRun,
    [switch]$NoModifyPath,
    [switch]$SystemCerts,
    [switch]$Uninstall,
    [switch]$Help
)

function Install-Memorize {
    param([hashtable]$Options, [string]$Beside)

    # Where the release lies and what is in it. Filled by scripts/release; empty in a checkout.
    $RELEASE_URL = ''
    $RELEASE_VERSION = ''
    $WHEEL_SHA256 = ''
    $LOCK_SHA256 = ''

    if ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') {
        throw 'install: this PowerShell runs in a restricted language mode. Install uv by hand, then: uv tool install <wheel of the release>'
    }
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue'
    try {
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    } catch {
        Write-Verbose 'TLS 1.2 could not be switched on; the system decides'
    }

    function Stop-Install([string]$What, [string]$Hint) {
        throw ('install: ' + $What + [Environment]::NewLine + 'hint: ' + $Hint)
    }

    # Runs a program, says nothing, returns what it printed; $null when it failed or is not there.
    function Read-Program([string]$Program, [string[]]$Words) {
        $ErrorActionPreference = 'Continue'
        try {
            $printed = & $Program @Words 2>$null
        } catch {
            return $null
        }
        if ($LASTEXITCODE -ne 0) { return $null }
        return ($printed -join [Environment]::NewLine)
    }

    # Runs a program, shows what it prints, stops the script when it fails.
    function Invoke-Program([string]$Program, [string[]]$Words) {
        $ErrorActionPreference = 'Continue'
        & $Program @Words
        if ($LASTEXITCODE -ne 0) {
            Stop-Install "$Program failed (see above)" 'behind a proxy that intercepts TLS, try again with -SystemCerts'
        }
    }

    function Test-Checkout([string]$Folder) {
        $file = Join-Path $Folder 'pyproject.toml'
        if (-not (Test-Path -LiteralPath $file)) { return $false }
        $lines = Get-Content -LiteralPath $file
        return ($lines -contains 'name = "memorize-agents"')
    }

    function Assert-Version([string]$Found) {
        if ($version -and ($version -ne $Found)) {
            Stop-Install "version $version was asked for, but this is $Found" "take the script of release $version, or leave -Version out"
        }
    }

    function Find-Uv {
        $names = @('uv', (Join-Path $HOME '.local/bin/uv.exe'), (Join-Path $HOME '.cargo/bin/uv.exe'))
        foreach ($name in $names) {
            if (Read-Program $name @('--version')) { return $name }
        }
        return ''
    }

    # The stub of the Windows store prints nothing and fails, so a candidate has to run.
    function Find-Python {
        $test = 'import sys, ensurepip, venv; assert sys.version_info >= (3, 11); print(sys.executable)'
        foreach ($name in @('py', 'python3', 'python')) {
            $found = Read-Program $name @('-c', $test)
            if ($found) { return $found }
        }
        return ''
    }

    function Get-Checked([string]$Address, [string]$File, [string]$Sum) {
        if (-not ($Address -match '^(https://|http://(127\.0\.0\.1|localhost)[:/])')) {
            Stop-Install "$Address is no https address" 'use an address that begins with https://'
        }
        try {
            Invoke-WebRequest -UseBasicParsing -Uri $Address -OutFile $File
        } catch {
            Stop-Install "$Address could not be downloaded: $_" 'try again, or download the release and use -From'
        }
        $got = (Get-FileHash -LiteralPath $File -Algorithm SHA256).Hash
        if ($got -ne $Sum) {
            Stop-Install "$Address is not the file that this script was made for (sha256 $got); nothing was installed" 'download the script again; if it stays like this, report it'
        }
    }

    if ($Options['Help']) {
        Write-Host 'Usage: install.ps1 [options]'
        Write-Host ''
        Write-Host '  -Demo            install, then play a recorded session into a temporary store; no agent is set up'
        Write-Host '  -Agent NAME      set up this agent, found or not (claude, codex)'
        Write-Host '  -Agents A,B      the same as a list'
        Write-Host '  -From DIR        install from this folder: a checkout, or one with wheels'
        Write-Host '  -Version X       refuse to install any other version than X'
        Write-Host '  -DryRun          say what would be done and change nothing'
        Write-Host '  -NoModifyPath    say nothing about PATH'
        Write-Host '  -SystemCerts     trust the system''s certificates (for networks that intercept TLS)'
        Write-Host '  -Uninstall       take the hooks out of the agents'' settings, then remove the program; memories stay'
        Write-Host '  -Help            show this'
        Write-Host ''
        Write-Host 'The same by environment: MEMORIZE_DEMO=1 MEMORIZE_AGENTS=A,B MEMORIZE_FROM=DIR MEMORIZE_VERSION=X MEMORIZE_DRY_RUN=1'
        Write-Host 'MEMORIZE_NO_MODIFY_PATH=1 MEMORIZE_SYSTEM_CERTS=1 MEMORIZE_UNINSTALL=1; MEMORIZE_RELEASE_URL is another place of the release.'
        return
    }

    # What is asked: a switch, else the environment.
    $demo = $Options['Demo'] -or $env:MEMORIZE_DEMO
    $dryRun = $Options['DryRun'] -or $env:MEMORIZE_DRY_RUN
    $quietPath = $Options['NoModifyPath'] -or $env:MEMORIZE_NO_MODIFY_PATH
    $systemCerts = $Options['SystemCerts'] -or $env:MEMORIZE_SYSTEM_CERTS
    $uninstall = $Options['Uninstall'] -or $env:MEMORIZE_UNINSTALL
    $from = $Options['From']
    if (-not $from) { $from = $env:MEMORIZE_FROM }
    $version = $Options['Version']
    if (-not $version) { $version = $env:MEMORIZE_VERSION }
    $url = $env:MEMORIZE_RELEASE_URL
    if (-not $url) { $url = $RELEASE_URL }
    $names = @()
    foreach ($list in @($Options['Agent'], $Options['Agents'], $env:MEMORIZE_AGENTS)) {
        foreach ($word in (($list -join ',') -split ',')) {
            if ($word) {
                if (-not ($word -cmatch '^[a-z][a-z-]*$')) { Stop-Install "'$word' is no name of an agent" 'use names such as claude or codex' }
                $names += $word
            }
        }
    }

    $base = $env:LOCALAPPDATA
    if (-not $base) { $base = Join-Path $HOME '.local/share' }
    $data = Join-Path $base 'memorize-agents'
    $venv = Join-Path $data 'venv'
    $folder = 'Scripts'
    if ($env:OS -ne 'Windows_NT') { $folder = 'bin' }
    $scripts = Join-Path $venv $folder
    $uv = Find-Uv

    if ($uninstall) {
        $tool = ''
        $program = Join-Path $scripts 'memorize'
        if ((Test-Path -LiteralPath $program) -or (Test-Path -LiteralPath ($program + '.exe'))) {
            $tool = 'venv'
        } elseif ($uv -and ((Read-Program $uv @('tool', 'list')) -match '(?m)^memorize-agents ')) {
            $tool = 'uv'
            $program = Join-Path (Read-Program $uv @('tool', 'dir')) "memorize-agents/$folder/memorize"
        } elseif ((Read-Program 'pipx' @('list', '--short')) -match '(?m)^memorize-agents ') {
            $tool = 'pipx'
            $program = Join-Path (Read-Program 'pipx' @('environment', '--value', 'PIPX_LOCAL_VENVS')) "memorize-agents/$folder/memorize"
        }
        if (-not $tool) {
            Write-Host 'memorize is not installed; nothing was changed'
            return
        }
        if ($dryRun) {
            Write-Host "would run: $program uninstall"
            Write-Host "would remove the program that $tool installed"
            Write-Host 'nothing was changed'
            return
        }
        # Hooks first: a hook without its program would be worse than a program without hooks.
        Invoke-Program $program @('uninstall')
        if ($tool -eq 'uv') { Invoke-Program $uv @('tool', 'uninstall', '--quiet', 'memorize-agents') }
        if ($tool -eq 'pipx') { Invoke-Program 'pipx' @('uninstall', 'memorize-agents') }
        if ($tool -eq 'venv') { Remove-Item -LiteralPath $venv -Recurse -Force }
        Write-Host 'memorize was removed'
        return
    }

    # What is installed.
    $kind = ''
    $source = ''
    $lock = ''
    $offline = ''
    if ($from) {
        if (-not (Test-Path -LiteralPath $from)) { Stop-Install "the folder $from does not exist" 'give -From a checkout or a folder of wheels' }
        $source = (Resolve-Path -LiteralPath $from).ProviderPath
        if (Test-Checkout $source) {
            $kind = 'checkout'
        } else {
            $kind = 'wheel'
            $wheels = @(Get-ChildItem -LiteralPath $source -Filter '*.whl')
            $pattern = 'memorize_agents-*.whl'
            if ($version) { $pattern = "memorize_agents-$version-*.whl" }
            $own = @($wheels | Where-Object { $_.Name -like $pattern })
            if ($own.Count -eq 0) { Stop-Install "$source holds no wheel of memorize-agents $version" 'give -From a checkout or a folder of wheels' }
            # The program's wheel alone takes its packages from the index; a folder with more wheels has to have all of them.
            if ($wheels.Count -gt $own.Count) { $offline = $source }
            $source = $own[-1].FullName
        }
    } elseif ($Beside -and (Test-Checkout $Beside)) {
        $kind = 'checkout'
        $source = $Beside
    } elseif ($url -and $WHEEL_SHA256) {
        $kind = 'release'
        $source = $url
        Assert-Version $RELEASE_VERSION
    } else {
        Stop-Install 'this copy of the script belongs to no release' 'run it inside a checkout, or give -From a folder'
    }
    if ($kind -eq 'checkout') {
        $init = Get-Content -LiteralPath (Join-Path $source 'memorize/__init__.py')
        $line = @($init | Where-Object { $_ -match '^__version__ = ' })[0]
        Assert-Version ($line -replace '^__version__ = "(.*)"$', '$1')
        $lock = Join-Path $source 'requirements/run.txt'
    }

    # By what.
    $python = Find-Python
    $tool = ''
    if ($uv) {
        $tool = 'uv'
    } elseif ($python -and (-not $offline) -and (Read-Program 'pipx' @('--version'))) {
        $tool = 'pipx'
    } elseif ($python) {
        $tool = 'venv'
    } else {
        Stop-Install 'neither uv nor Python 3.11 (or newer) with venv was found' 'winget install astral-sh.uv, then run this again in a new window'
    }

    $next = 'setup'
    if ($demo) { $next = 'demo' }
    if ($dryRun) {
        Write-Host "would install memorize from $source by $tool"
        if ($tool -eq 'venv') { Write-Host "would make $venv" }
        Write-Host "would run: memorize $next $names"
        Write-Host 'nothing was changed'
        return
    }

    if ($systemCerts) {
        $env:UV_SYSTEM_CERTS = '1'
        $env:UV_NATIVE_TLS = '1'
    }
    $env:PYTHONHOME = ''
    $env:PYTHONPATH = ''
    $env:PIP_USER = '0'
    $temp = ''
    try {
        if ($kind -eq 'release') {
            $temp = Join-Path $data ('tmp.' + (Get-Random))
            New-Item -ItemType Directory -Path $temp -Force | Out-Null
            $wheel = "memorize_agents-$RELEASE_VERSION-py3-none-any.whl"
            Write-Host "downloading $url/$wheel"
            $source = Join-Path $temp $wheel
            $lock = Join-Path $temp 'requirements.txt'
            Get-Checked "$url/$wheel" $source $WHEEL_SHA256
            Get-Checked "$url/requirements.txt" $lock $LOCK_SHA256
        }
        Write-Host "installing memorize from $source by $tool"
        if ($tool -eq 'uv') {
            $words = @('tool', 'install', '--quiet', '--python', '>=3.11', '--compile-bytecode', '--reinstall')
            if ($offline) { $words += @('--no-index', '--find-links', $offline) }
            if ($lock) { $words += @('--constraints', $lock) }
            Invoke-Program $uv ($words + @($source))
            $program = Join-Path (Read-Program $uv @('tool', 'dir', '--bin')) 'memorize'
        } elseif ($tool -eq 'pipx') {
            Invoke-Program 'pipx' @('install', '--quiet', '--force', '--python', $python, $source)
            $program = Join-Path (Read-Program 'pipx' @('environment', '--value', 'PIPX_LOCAL_VENVS')) "memorize-agents/$folder/memorize"
        } else {
            $own = Join-Path $scripts 'python'
            # A working one is kept while it is renewed: hooks name its interpreter and may run at any moment.
            if (-not (Read-Program $own @('-m', 'pip', '--version'))) { Invoke-Program $python @('-m', 'venv', '--clear', $venv) }
            $pip = @('-m', 'pip', 'install', '--quiet', '--no-cache-dir', '--disable-pip-version-check')
            if ($offline) {
                Invoke-Program $own ($pip + @('--no-index', '--find-links', $offline, '--force-reinstall', $source))
            } elseif ($lock) {
                Invoke-Program $own ($pip + @('--require-hashes', '-r', $lock))
                Invoke-Program $own ($pip + @('--no-deps', '--force-reinstall', $source))
            } else {
                Invoke-Program $own ($pip + @('--upgrade', $source))
            }
            $program = Join-Path $scripts 'memorize'
        }
    } finally {
        if ($temp) { Remove-Item -LiteralPath $temp -Recurse -Force }
    }

    $installed = Read-Program $program @('--version')
    if (-not $installed) { Stop-Install "$program was installed but does not start" 'run it by hand to see why' }
    Write-Host "installed ${installed}: $program"
    if ((-not $quietPath) -and (-not (Get-Command memorize -ErrorAction SilentlyContinue))) {
        Write-Host "to call it by name, add this folder to PATH: $(Split-Path $program)"
    }

    if ($demo) {
        Invoke-Program $program @('demo')
    } else {
        $words = @('setup')
        foreach ($name in $names) { $words += @('--agent', $name) }
        Invoke-Program $program $words
    }
}

. {
    $memorizeOptions = @{
        Demo = [bool]$Demo; Agent = $Agent; Agents = $Agents; From = $From; Version = $Version; DryRun = [bool]$DryRun
        NoModifyPath = [bool]$NoModifyPath; SystemCerts = [bool]$SystemCerts; Uninstall = [bool]$Uninstall; Help = [bool]$Help
    }
    Install-Memorize -Options $memorizeOptions -Beside $PSScriptRoot
}
