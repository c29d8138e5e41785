#!/usr/bin/env bash
# Builds the kernels for 64-bit ARM on Debian with another processor, runs all agents there under emulation, and compares
# the digests of their runs with tests/data/run_digests.json. Takes about half an hour. Needs the virtual environment of
# `make test`, and once, as root:
#   dpkg --add-architecture arm64 && apt update && apt install qemu-user-static gcc-aarch64-linux-gnu
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
here=build/aarch64
root=$here/root
mkdir -p $here/debs $root

_PYTHON_HOST_PLATFORM=linux-aarch64 CC=aarch64-linux-gnu-gcc LDSHARED="aarch64-linux-gnu-gcc -shared" \
  $python setup.py --quiet build --build-base $here --build-lib $here/lib
for module in $here/lib/psconrl/kernels/{,*/}*x86_64*.so; do
  mv "$module" "${module/x86_64/aarch64}"
done

# A Python of Debian's for ARM, unpacked and not installed, and the wheels of what psconrl needs.
if [ ! -x $root/usr/bin/python3.11 ]; then
  (cd $here/debs && apt-get -qq download \
    {python3.11-minimal,libpython3.11-minimal,libpython3.11-stdlib,libc6,libgcc-s1,libstdc++6,zlib1g,libexpat1}:arm64 \
    {libffi8,libssl3,libsqlite3-0,libbz2-1.0,liblzma5,libuuid1,libncursesw6,libtinfo6}:arm64)
  for package in $here/debs/*.deb; do
    dpkg-deb -x "$package" $root
  done
fi
if [ ! -d $here/site ]; then
  $python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
    > $here/requirements.txt
  $python -m pip install --quiet --only-binary :all: --target $here/site --constraint constraints.txt \
    --python-version 3.11 --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
    --requirement $here/requirements.txt
fi

PYTHONHOME=$root/usr PYTHONPATH=$here/lib:$here/site OPENBLAS_NUM_THREADS=1 \
  qemu-aarch64-static -L $root $root/usr/bin/python3.11 tests/run_digests.py > $here/digests.json
$python - $here/digests.json tests/data/run_digests.json <<'EOF'
import json
import sys

found, wanted = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
other = sorted(name for name in wanted if found.get(name) != wanted[name])
print(f"{len(wanted) - len(other)} of {len(wanted)} digests are the same on 64-bit ARM", *other, sep="\n")
sys.exit(bool(other))
EOF
