#!/usr/bin/env bash
# Checks the JavaScript: its format, its types, and its tests. Needs Node.js 20 or newer with npm; without them it says so and checks
# nothing, except where CI is set: there it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

needed="Node.js 20 or newer with npm (Debian, Ubuntu: apt install nodejs npm)"
version=$(node --version 2>/dev/null || true)
major=${version#v}
major=${major%%.*}
if [[ ! $major =~ ^[0-9]+$ ]] || ((major < 20)) || ! command -v npm >/dev/null; then
  if [[ -n ${CI:-} && ! ${CI:-} =~ ^(0|false|no)$ ]]; then
    echo "The JavaScript cannot be checked: it needs $needed." >&2
    exit 1
  fi
  echo "The JavaScript was not checked: it needs $needed."
  exit 0
fi

# Installed once for every content of the lock file.
stamp=node_modules/.ready
if ! cmp -s package-lock.json "$stamp"; then
  npm ci --no-progress --loglevel=error
  cp package-lock.json "$stamp"
fi

node_modules/.bin/prettier --check --log-level warn --no-error-on-unmatched-pattern \
  "leakage/ui/components/**/*.js" "tests/js/**/*.js" "*.json" .prettierrc.json
node_modules/.bin/tsc --project tsconfig.json
if ! compgen -G "tests/js/*.js" >/dev/null; then
  echo "The JavaScript is well formed and its types are right; there are no tests of it."
  exit 0
fi
npm test --silent
echo "The JavaScript is well formed, its types are right, and its tests pass."
