#!/usr/bin/env bash
# Prints the path of a Chrome or Chromium that runs: $LEAKAGE_BROWSER, else one already installed, else (as root with apt) a fresh Chromium.
set -euo pipefail

candidates=(
  google-chrome google-chrome-stable chromium chromium-browser
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
  "/Applications/Chromium.app/Contents/MacOS/Chromium"
  "$HOME/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
  "$HOME/Applications/Chromium.app/Contents/MacOS/Chromium"
)

# It must say its version: Ubuntu's `chromium-browser` may be a stub that only asks for a snap.
usable() {
  local path said
  path=$(command -v "$1") || return 1
  said=$("$path" --version 2>/dev/null </dev/null) || return 1
  [[ $said =~ (Chrome|Chromium)[^0-9]*[0-9]+\. ]] && printf '%s\n' "$path"
}

installed() {
  local candidate
  for candidate in "${candidates[@]}"; do
    usable "$candidate" && return
  done
  return 1
}

if [[ -n ${LEAKAGE_BROWSER:-} ]]; then
  usable "$LEAKAGE_BROWSER" && exit
  echo "LEAKAGE_BROWSER is '$LEAKAGE_BROWSER', which is no Chrome or Chromium that runs: correct or unset it." >&2
  exit 1
fi

installed && exit

if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
  echo "No Chrome or Chromium found: installing chromium with apt." >&2
  if log=$({ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } 2>&1 </dev/null); then
    installed && exit
  else
    tail -n 5 <<<"$log" >&2
  fi
fi

echo "The browser tests need Chrome or Chromium and found none: install one, or set LEAKAGE_BROWSER to its path." >&2
exit 1
