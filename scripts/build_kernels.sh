#!/usr/bin/env bash
# Compiles leakage/ui/components/attack/assembly/kernels.ts and writes the code as text to simd_code.js beside that folder, or to the file
# that the first argument names. The text is hexadecimal, which gzip makes smaller than base64. Needs the packages of package-lock.json (npm ci).
set -euo pipefail
cd "$(dirname "$0")/.."

folder=leakage/ui/components/attack
target=${1:-$folder/simd_code.js}
code=$(mktemp)
trap 'rm -f "$code"' EXIT

node_modules/.bin/asc "$folder/assembly/kernels.ts" --outFile "$code" \
  --enable simd --runtime stub --importMemory --noExportMemory --noAssert -O3
{
  echo "// Written by scripts/build_kernels.sh from assembly/kernels.ts."
  echo "export const CODE ="
  od -An -v -tx1 "$code" | tr -d ' \n' | fold -w 128 | sed "s/.*/  '&' +/; \$s/ +\$/;/"
  echo
} >"$target"
