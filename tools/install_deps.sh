#!/usr/bin/env bash
# The only list of Debian 12 packages. Usage: tools/install_deps.sh [--check] [test|build|demo]
#   build  what `pip install .` needs;  test (default)  adds compilers, linters and servers of the
#   tests;  demo  adds to build what `make demo` shows.
# --check changes nothing and ends with 1 when a package is missing. Otherwise the missing ones are
# installed with apt-get, as root or through a sudo that asks nothing.
set -euo pipefail

build=(
  ca-certificates cmake g++ git make ninja-build pkg-config
  python3 python3-dev python3-venv
  libcurl4-openssl-dev libjpeg62-turbo-dev libpng-dev libssl-dev libxxhash-dev
  nlohmann-json3-dev
)
test=(
  ccache clang-19 clang-tidy-19 libbenchmark-dev libclang-rt-19-dev libgmock-dev libgtest-dev
  librapidcheck-dev mold nginx-light openssl fish zsh
)
demo=(
  gnome-backgrounds lxqt-themes mate-backgrounds plasma-workspace-wallpapers python3-doc
  ukui-wallpapers
)

check=0
group=test
for argument in "$@"; do
  case "$argument" in
    --check) check=1 ;;
    build|test|demo) group=$argument ;;
    *) echo "usage: tools/install_deps.sh [--check] [test|build|demo]" >&2; exit 2 ;;
  esac
done
case "$group" in
  build) wanted=("${build[@]}") ;;
  test) wanted=("${build[@]}" "${test[@]}") ;;
  demo) wanted=("${build[@]}" "${demo[@]}") ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian system: provide the equivalents of: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  if sudo -n true 2>/dev/null; then run=(sudo -n); else check=1; fi
fi
if [ "$check" -eq 1 ]; then
  echo "Missing Debian packages. Install them with:" >&2
  echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
apt=("${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
