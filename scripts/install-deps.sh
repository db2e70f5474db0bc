#!/usr/bin/env bash
# Installs what the build needs on Debian 12 or Ubuntu 24.04; with --ci also what the checks need.
# Does nothing, and needs no network, when everything is there.
set -euo pipefail

packages=(
  g++ make cmake ninja-build pkg-config git
  libhwy-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsimdjson-dev
  libutf8proc-dev libpcre2-dev libxxhash-dev libboost-dev libpugixml-dev libcpp-httplib-dev libssl-dev
  prometheus-cpp-dev
  libgtest-dev libgmock-dev librapidcheck-dev libvalijson-dev
)

fail() {
  echo "install-deps: $*" >&2
  exit 1
}

ci=0
case "${1-}" in
  '') ;;
  --ci) ci=1 ;;
  *) fail "usage: install-deps.sh [--ci]" ;;
esac

command -v apt-get > /dev/null || fail "apt-get not found; install by hand: ${packages[*]}"

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2> /dev/null | grep -qx installed ||
      echo "$package"
  done
}

# For make check-browser and check-clients. Without its own fonts Chromium draws no text.
browser=(chromium fonts-dejavu-core python3 python3-venv)

# The LLVM packages of one version, in the order of preference: 16, which fixes the formatting, or
# the lowest newer one.
llvm_packages() {
  echo "clang-$1 clang-format-$1 clang-tidy-$1 libclang-rt-$1-dev"
}
add_llvm() {
  local version
  for version in 16 17 18 19; do
    if [[ -n $(apt-cache madison "clang-tidy-$version" 2> /dev/null) ]]; then
      read -ra llvm <<< "$(llvm_packages "$version")"
      packages+=("${llvm[@]}" ccache)
      return
    fi
  done
  fail "no clang of version 16 or newer in the package lists"
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    command -v sudo > /dev/null || fail "not root and no sudo; install by hand: ${packages[*]}"
    sudo --preserve-env=DEBIAN_FRONTEND "$@"
  fi
}
export DEBIAN_FRONTEND=noninteractive

# With all tools of one LLVM version installed the package lists are not asked, nor needed.
updated=0
if ((ci)); then
  for version in 16 17 18 19; do
    read -ra llvm <<< "$(llvm_packages "$version")"
    if [[ -z $(missing_packages "${llvm[@]}" ccache "${browser[@]}") ]]; then
      ci=0
      break
    fi
  done
fi
if ((ci)); then
  as_root apt-get update -q
  updated=1
  add_llvm
  packages+=("${browser[@]}")
fi

mapfile -t missing < <(missing_packages "${packages[@]}")
((${#missing[@]})) || exit 0
echo "install-deps: installing ${missing[*]}"
((updated)) || as_root apt-get update -q
as_root apt-get install -y -q --no-install-recommends "${missing[@]}"

mapfile -t missing < <(missing_packages "${packages[@]}")
((${#missing[@]} == 0)) || fail "still missing after the installation: ${missing[*]}"
